#include "runtime/memory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <map>
#include <string>

#include "support/sanitized.hpp"

namespace lockstep::runtime {
namespace {

namespace fs = std::filesystem;

/// A folder with the files of a control group.
class Group {
 public:
  explicit Group(const std::map<std::string, std::string>& files) {
    std::string name = (fs::temp_directory_path() / "cgroup-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) folder_ = name;
    for (const auto& [file, text] : files) std::ofstream{folder_ / file} << text;
  }
  ~Group() { fs::remove_all(folder_); }
  [[nodiscard]] const fs::path& folder() const noexcept { return folder_; }

 private:
  fs::path folder_;
};

TEST(AvailableMemory, IsPartOfTheInstalledMemory) {
  const auto installed =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_GT(available_memory().value, 0);
  EXPECT_LE(available_memory().value, installed);
}

TEST(AvailableMemory, OfAGroupIsWhatItsLimitLeaves) {
  const Group second{
      {{"memory.max", "1000\n"},
       {"memory.current", "700\n"},
       {"memory.stat", "anon 300\nfile 400\ninactive_file 150\nactive_file 50\nslab 39\nslab_reclaimable 30\n"}}};
  EXPECT_EQ(left_in_cgroup(second.folder()), 530U) << "files in its cache can go, and what the kernel knows of them";
  const Group first{{{"memory.limit_in_bytes", "1000\n"},
                     {"memory.usage_in_bytes", "1200\n"},
                     {"memory.stat", "cache 5\ninactive_file 7\ntotal_inactive_file 100\ntotal_active_file 0\n"}}};
  EXPECT_EQ(left_in_cgroup(first.folder()), 0U);
  const Group free{{{"memory.max", "max\n"}, {"memory.current", "700\n"}}};
  EXPECT_FALSE(left_in_cgroup(free.folder()));
  EXPECT_FALSE(left_in_cgroup("/nowhere"));
}

TEST(LimitsLeft, AreTheLimitsLessWhatIsUsed) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizer itself has more than the limit";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  if (before.rlim_cur == RLIM_INFINITY) {
    EXPECT_EQ(limits_left().data, std::numeric_limits<std::uint64_t>::max());
  }
  rlimit limit = before;
  limit.rlim_cur = rlim_t{1} << 40;
  if (setrlimit(RLIMIT_DATA, &limit) != 0) GTEST_SKIP() << "limits cannot be set";
  const std::uint64_t left = limits_left().data;
  EXPECT_LT(left, std::uint64_t{1} << 40);
  EXPECT_GT(left, std::uint64_t{1} << 39);
  setrlimit(RLIMIT_DATA, &before);
}

}  // namespace
}  // namespace lockstep::runtime
