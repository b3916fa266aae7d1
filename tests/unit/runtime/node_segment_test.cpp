#include "runtime/node_segment.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "unit/io/temporary_folder.hpp"

namespace lockstep::runtime {
namespace {

namespace fs = std::filesystem;

pid_t process_that_is_gone() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

TEST(NodeSegment, OnesOfProcessesThatAreGoneAreRemoved) {
  const io::TemporaryFolder folder;
  const pid_t gone = process_that_is_gone();
  const std::string digits = "0123456789abcdef01234567";
  const auto make = [&](const std::string& name, int age_s) {
    const std::string path = folder / name;
    io::put(path, "memory");
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds{age_s});
    return path;
  };
  const std::string left = make(fmt::format("lockstep-{}-{}", gone, digits), 120);
  const std::string kept[] = {make(fmt::format("lockstep-{}-{}", gone, "ffffffffffffffffffffffff"), 10),
                              make(fmt::format("lockstep-{}-{}", getpid(), digits), 120),
                              make(fmt::format("lockstep-{}-{}", gone, digits.substr(8)), 120),
                              make(fmt::format("lockstep-{}-{}", gone, "0123456789abcdef0123456z"), 120),
                              make(fmt::format("lockstep-{}", digits), 120),
                              make("lockstep--1-" + digits, 120),
                              make("another", 120)};
  const std::string link = folder / fmt::format("lockstep-{}-{}", gone, "eeeeeeeeeeeeeeeeeeeeeeee");
  fs::create_symlink(kept[6], link);

  remove_abandoned_segments(folder.path());
  EXPECT_FALSE(fs::exists(left));
  for (const std::string& path : kept) EXPECT_TRUE(fs::exists(path)) << path;
  EXPECT_TRUE(fs::is_symlink(link));
  remove_abandoned_segments(folder / "none");
}

}  // namespace
}  // namespace lockstep::runtime
