#include "core/log.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::core {
namespace {

template <class F>
std::string stderr_of(F&& f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
}

void say_everything() {
  log_info("one");
  log_warning("two {} %v");
  log_error("three");
}

// In a process of its own, which keeps one identity from then on.
TEST(Log, AddsTheRankOnceItIsKnown) {
  const pid_t child = fork();
  if (child == 0) {
    const std::string plain = "info: one\nwarning: two {} %v\nerror: three\n";
    EXPECT_EQ(stderr_of(say_everything), plain);
    set_log_identity(0, "node1");
    EXPECT_EQ(stderr_of(say_everything), plain);
    set_log_identity(3, "node2");
    EXPECT_EQ(stderr_of(say_everything), "[rank 3 on node2] warning: two {} %v\n[rank 3 on node2] error: three\n");
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Log, KeepsLinesOfThreadsApart) {
  constexpr int n_threads = 4, n_messages = 500;
  const std::string text = stderr_of([] {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < n_threads; ++thread) {
      threads.emplace_back([thread] {
        for (int i = 0; i < n_messages; ++i) log_warning(std::to_string(thread) + "/" + std::to_string(i));
      });
    }
  });
  std::set<std::string> messages;
  std::istringstream lines{text};
  int n_lines = 0;
  for (std::string line; std::getline(lines, line); ++n_lines) messages.insert(line.substr(line.find(": ") + 2));
  EXPECT_EQ(n_lines, n_threads * n_messages);
  for (int thread = 0; thread < n_threads; ++thread) {
    for (int i = 0; i < n_messages; ++i) {
      EXPECT_TRUE(messages.contains(std::to_string(thread) + "/" + std::to_string(i)));
    }
  }
}

}  // namespace
}  // namespace lockstep::core
