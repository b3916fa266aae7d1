#include "data/load/stage.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "data/format/manifest.hpp"
#include "io/digest.hpp"
#include "runtime/session.hpp"
#include "shared_set.hpp"

namespace lockstep::data {
namespace {

using support::world;

/// A folder to stage to, the same for all ranks.
class StageFolder {
 public:
  StageFolder() {
    if (world().rank() == 0) folder_.emplace();
    path_ = std::filesystem::path{world().broadcast(folder_ ? folder_->path().string() : "")} / "staged";
  }
  ~StageFolder() { world().barrier(); }
  StageFolder(const StageFolder&) = delete;
  StageFolder& operator=(const StageFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::optional<TemporaryFolder> folder_;
  std::filesystem::path path_;
};

RANKS_TEST(Stage, CopiesEverythingAndKeepsWhatIsRight) {
  namespace fs = std::filesystem;
  const SharedSet shared{{}};
  const StageFolder to;
  std::size_t n_told = 0;
  const fs::path staged = stage(world(), shared.path(), to.path().string(), [&n_told] { ++n_told; });
  EXPECT_EQ(staged.parent_path(), to.path());
  EXPECT_GE(n_told, 2u);
  std::size_t n_files = 0;
  for (const auto& entry : fs::directory_iterator{staged}) {
    ++n_files;
    EXPECT_EQ(io::digest_of_file(entry.path().string()),
              io::digest_of_file((fs::path{shared.path()} / entry.path().filename()).string()));
  }
  EXPECT_EQ(n_files, 4u);  // 3 shards and the manifest: nothing temporary

  const fs::path kept = staged / "train-00000.h5", damaged = staged / "train-00001.h5";
  const fs::path missing = staged / "train-00002.h5";
  world().barrier();
  if (world().rank() == 0) {
    damage_sample(staged, 57);
    fs::remove(missing);
  }
  world().barrier();
  const auto time_kept = fs::last_write_time(kept);
  const std::string digest = io::digest_of_file((fs::path{shared.path()} / "train-00001.h5").string());
  EXPECT_NE(io::digest_of_file(damaged.string()), digest);
  world().barrier();
  stage(world(), shared.path(), to.path().string());
  EXPECT_EQ(fs::last_write_time(kept), time_kept);
  EXPECT_EQ(io::digest_of_file(damaged.string()), digest);
  EXPECT_TRUE(fs::exists(missing));
}

// In a shared folder, links of other users may lead to their files.
RANKS_TEST(Stage, WritesThroughNoLink) {
  namespace fs = std::filesystem;
  const SharedSet shared{{}};
  const StageFolder to;
  const fs::path staged = stage(world(), shared.path(), to.path().string());
  const fs::path victim = to.path() / "victim", shard = staged / "train-00000.h5", manifest = staged / manifest_name;
  const std::string part = fmt::format("{}.{}.{}.part", shard.string(), runtime::host_name(), getpid());
  world().barrier();
  if (world().rank() == 0) {
    std::ofstream{victim} << "another's";
    for (const fs::path& file : {shard, manifest}) fs::remove(file);
    for (const fs::path& link : {shard, manifest, fs::path{part}}) fs::create_symlink(victim, link);
  }
  world().barrier();
  stage(world(), shared.path(), to.path().string());
  std::string content;
  std::getline(std::ifstream{victim}, content);
  EXPECT_EQ(content, "another's");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(shard)) && fs::is_regular_file(fs::symlink_status(manifest)));
  world().barrier();
  if (world().rank() == 0) {
    fs::remove(victim);
    fs::rename(staged, victim);
    fs::create_directory_symlink(victim, staged);
  }
  world().barrier();
  EXPECT_THROW(stage(world(), shared.path(), to.path().string()), core::Error);
}

RANKS_TEST(Stage, SetsWithTheSameNamesStayApart) {
  const SharedSet one{{}}, two{{.n_samples = 60}};
  const StageFolder to;
  const std::string first = stage(world(), one.path(), to.path().string());
  const std::string second = stage(world(), two.path(), to.path().string());
  EXPECT_NE(first, second);
  EXPECT_EQ(read_manifest(first).splits.front().n_samples, read_manifest(one.path()).splits.front().n_samples);
  EXPECT_EQ(stage(world(), one.path(), to.path().string()), first);
}

RANKS_TEST(Stage, ADamagedSourceIsAnErrorOnAllRanks) {
  const SharedSet shared{{}};
  shared.damage(57);
  const StageFolder to;
  bool is_caught = false;
  try {
    stage(world(), shared.path(), to.path().string());
  } catch (const core::Error& error) {
    is_caught = true;
    EXPECT_EQ(error.code(), core::ExitCode::failed);
    EXPECT_NE(std::string{error.what()}.find("train-00001.h5"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(is_caught);
  for (const auto& entry : std::filesystem::recursive_directory_iterator{to.path()}) {
    EXPECT_NE(entry.path().filename(), manifest_name);
    EXPECT_FALSE(entry.path().filename().string().starts_with("train-00001.h5")) << entry.path();
  }
}

RANKS_TEST(Stage, AnUnwritableFolderIsAnErrorOnAllRanks) {
  const SharedSet shared{{}};
  EXPECT_THROW(stage(world(), shared.path(), "/proc/no_such_place"), core::Error);
}

}  // namespace
}  // namespace lockstep::data
