#include "core/temporary.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace lockstep::core {
namespace {

namespace fs = std::filesystem;

class TemporaryTest : public testing::Test {
 protected:
  TemporaryTest() {
    std::string name = (fs::temp_directory_path() / "lockstep-core-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
  }
  ~TemporaryTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::set<std::string> entries() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator{folder_}) names.insert(entry.path().filename().string());
    return names;
  }
  /// Starts a process that makes these and is killed; returns their paths.
  template <class Make>
  void make_and_die(Make make) const {
    const pid_t child = fork();
    if (child == 0) {
      const Temporary kept = make();
      raise(SIGKILL);
    }
    waitpid(child, nullptr, 0);
  }
  /// The messages of remove_leftovers().
  [[nodiscard]] std::string told(const std::string& name) const {
    testing::internal::CaptureStderr();
    remove_leftovers(folder_.string(), name);
    return testing::internal::GetCapturedStderr();
  }

  fs::path folder_;
};

TEST_F(TemporaryTest, MakesFilesAndFoldersBesideTheirFinalNames) {
  const Temporary file = make_temporary_file(path("f"));
  const Temporary folder = make_temporary_folder(path("d"), 0700);
  ASSERT_TRUE(file && folder);
  EXPECT_EQ(fs::path{file.path}.parent_path(), folder_);
  EXPECT_TRUE(fs::is_regular_file(file.path));
  EXPECT_TRUE(fs::is_directory(folder.path));
  EXPECT_EQ(fs::status(folder.path).permissions(), fs::perms::owner_all);
  EXPECT_EQ(write(file.descriptor.get(), "x", 1), 1);
  EXPECT_EQ(fs::file_size(file.path), 1u);
}

TEST_F(TemporaryTest, GivesNoNameTwice) {
  const std::string first = make_temporary_file(path("f")).path;
  fs::remove(first);
  EXPECT_NE(make_temporary_file(path("f")).path, first);
}

TEST_F(TemporaryTest, TellsWhyThereIsNone) {
  EXPECT_FALSE(make_temporary_file(path("none/f")));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(make_temporary_folder(path("none/d")));
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(TemporaryTest, RemovesWhatAKilledProcessHasLeft) {
  make_and_die([&] {
    Temporary made = make_temporary_folder(path("out"));
    std::ofstream{made.path + "/shard"} << "half";
    return made;
  });
  make_and_die([&] { return make_temporary_file(path("r.json")); });
  ASSERT_EQ(entries().size(), 2u);
  EXPECT_NE(told("out").find("left over from a killed run"), std::string::npos);
  EXPECT_EQ(entries().size(), 1u);
  EXPECT_NE(told("").find("r.json"), std::string::npos);
  EXPECT_TRUE(entries().empty());
}

// Another user may have given another folder of ours that name.
TEST_F(TemporaryTest, RemovesNoFolderWhereOthersMayRename) {
  fs::permissions(folder_, fs::perms::all);
  make_and_die([&] { return make_temporary_folder(path("out")); });
  EXPECT_NE(told("out").find("may be left over from a killed run"), std::string::npos);
  EXPECT_EQ(entries().size(), 1u);
  fs::permissions(folder_, fs::perms::all | fs::perms::sticky_bit);
  EXPECT_NE(told("out").find("removed"), std::string::npos);
  EXPECT_TRUE(entries().empty());
}

TEST_F(TemporaryTest, LeavesWhatIsStillWritten) {
  const Temporary file = make_temporary_file(path("out"));
  const Temporary folder = make_temporary_folder(path("out"));
  EXPECT_EQ(told("out"), "");
  EXPECT_EQ(entries().size(), 2u);
}

TEST_F(TemporaryTest, LeavesWhatIsOfOthers) {
  std::ofstream{path("out.tmp-mine")} << "x";
  std::ofstream{path("out.tmp-1234567890abcdef12345")} << "x";
  fs::create_directory(path("elsewhere"));
  const std::string other = fs::path{make_temporary_file(path("other")).path}.filename().string();
  const std::string ending = other.substr(other.find(".tmp-"));
  fs::create_directory_symlink("elsewhere", path("out" + ending));
  const auto before = entries();
  EXPECT_EQ(told("out"), "");
  EXPECT_EQ(entries(), before);
}

TEST_F(TemporaryTest, TellsOfWhatItCannotJudge) {
  std::ofstream{path("out.tmp-00000000" + std::string(12, 'a'))} << "x";
  make_and_die([&] { return make_folder_for_old(path("out")); });
  const auto before = entries();
  const std::string text = told("out");
  EXPECT_NE(text.find("on another node or from before the last boot"), std::string::npos) << text;
  EXPECT_NE(text.find("was replacing it: move it back"), std::string::npos) << text;
  EXPECT_EQ(entries(), before);
}

}  // namespace
}  // namespace lockstep::core
