#include "reduce_all/output_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"

namespace lockstep::reduce_all {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() { fs::create_directories(folder_); }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  static std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream{path}.rdbuf();
    return text.str();
  }

  const fs::path folder_ = fs::path{testing::TempDir()} / ("output_file_" + std::to_string(::getpid()));
  const fs::path path_ = folder_ / "r.json";
};

TEST_F(OutputFileTest, LeavesAnExistingFileAloneUntilThereIsContent) {
  std::ofstream{path_} << "old";
  { const OutputFile untouched{path_.string(), "--json"}; }
  EXPECT_EQ(read(path_), "old");
  OutputFile file{path_.string(), "--json"};
  EXPECT_EQ(read(path_), "old");
  file.replace("new");
  EXPECT_EQ(read(path_), "new");
  file.replace("newer and longer");
  EXPECT_EQ(read(path_), "newer and longer");
}

TEST_F(OutputFileTest, LeavesNothingElseBehind) {
  OutputFile file{path_.string(), "--json"};
  EXPECT_TRUE(fs::is_empty(folder_));
  file.replace("x");
  EXPECT_EQ(std::distance(fs::directory_iterator{folder_}, fs::directory_iterator{}), 1);
}

// In a folder for all somebody may have put a link where a temporary file could be expected.
TEST_F(OutputFileTest, WritesThroughNoLinkOfATemporaryName) {
  std::ofstream{folder_ / "victim"} << "another's";
  fs::create_symlink("victim", path_.string() + ".tmp." + std::to_string(::getpid()));
  OutputFile file{path_.string(), "--json"};
  file.replace("new");
  EXPECT_EQ(read(folder_ / "victim"), "another's");
  EXPECT_EQ(read(path_), "new");
}

TEST_F(OutputFileTest, KeepsASymbolicLinkALink) {
  std::ofstream{folder_ / "target"} << "old";
  fs::create_symlink(folder_ / "target", path_);
  OutputFile file{path_.string(), "--json"};
  file.replace("new");
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(read(folder_ / "target"), "new");
}

TEST_F(OutputFileTest, WritesWhatADanglingLinkNames) {
  fs::create_symlink("second", path_);  // relative to the link's folder
  fs::create_symlink(folder_ / "target", folder_ / "second");
  OutputFile file{path_.string(), "--json"};
  file.replace("new");
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(read(folder_ / "target"), "new");
}

TEST_F(OutputFileTest, RefusesAPlaceInASetOfShards) {
  std::ofstream{folder_ / "manifest.json"} << "{\n  \"format\": \"lockstep-shards\",\n  \"version\": 1,\n";
  EXPECT_THROW((OutputFile{path_.string(), "--json"}), core::Error);
  EXPECT_THROW((OutputFile{(folder_ / "manifest.json").string(), "--json"}), core::Error);
  std::ofstream{folder_ / "manifest.json"} << "{\n  \"format\": \"another\",\n  \"version\": 1,\n";
  EXPECT_NO_THROW((OutputFile{path_.string(), "--json"}));
}

TEST_F(OutputFileTest, RefusesLinksInACircle) {
  fs::create_symlink("other", path_);
  fs::create_symlink("r.json", folder_ / "other");
  EXPECT_THROW((OutputFile{path_.string(), "--json"}), core::Error);
  EXPECT_TRUE(fs::is_symlink(path_));
}

TEST_F(OutputFileTest, RefusesWhatCannotBeReplaced) {
  for (const std::string& path : {folder_.string(), (folder_ / "none" / "r.json").string(), std::string{"/dev/null"}}) {
    try {
      const OutputFile file{path, "--json"};
      FAIL() << path;
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code(), core::ExitCode::usage);
      EXPECT_NE(std::string{error.what()}.find("--json"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace lockstep::reduce_all
