#include "training/run/directory.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "core/temporary.hpp"
#include "support/set_clock.hpp"
#include "unit/io/temporary_folder.hpp"
#include "unit/training/run/example_run.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using core::ExitCode;
using io::expect_error;
using io::get;
using io::put;
using io::TemporaryFolder;
using Json = nlohmann::json;

/// Makes runs without a folder begin in the current one.
class InFolder {
 public:
  explicit InFolder(const std::string& path) : before_{fs::current_path()} { fs::current_path(path); }
  ~InFolder() { fs::current_path(before_); }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;

 private:
  fs::path before_;
};

std::vector<Json> lines_of(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream text{get(path)};
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

Json status_of(const RunDirectory& run) { return Json::parse(get(run.file("status.json"))); }

void refuse(const std::string& path, const std::vector<std::string>& words) {
  expect_error([&] { RunDirectory{path, "toy"}; }, ExitCode::usage, words);
}

TEST(RunDirectory, TellsARunFromBeginToEnd) {
  const TemporaryFolder folder;
  RunDirectory run{folder / "a/b", "toy"};
  EXPECT_EQ(run.path(), folder / "a/b");
  run.start(example_info());
  EXPECT_EQ(status_of(run)["state"], "running");
  run.interval_over(example_train());
  EXPECT_EQ(status_of(run)["step"], 400);
  EXPECT_EQ(status_of(run)["loss"], 0.125);
  run.evaluated(example_evaluation());
  run.ended(example_final());
  EXPECT_EQ(status_of(run)["state"], "finished");
  EXPECT_EQ(status_of(run)["epoch"], 50);
  const std::vector<Json> lines = lines_of(run.file("log.jsonl"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["kind"], "start");
  EXPECT_EQ(lines[1]["kind"], "train");
  EXPECT_EQ(lines[2]["kind"], "evaluation");
  EXPECT_EQ(lines[3]["kind"], "final");
  const Json info = Json::parse(get(run.file("run.json")));
  EXPECT_EQ(info["recipe"]["optimizer"]["lr"], 0.001);
  EXPECT_EQ(info["meta"]["arguments"][1], "toy");
  EXPECT_EQ(info["meta"]["nodes"], 2);
  EXPECT_EQ(info["meta"]["variables"]["OMP_NUM_THREADS"], "1");
  EXPECT_EQ(info["meta"]["libraries"]["HDF5"], "1.10.8");
}

TEST(RunDirectory, RenewsAStatusThatIsOlderThanFiveSeconds) {
  const TemporaryFolder folder;
  const support::SetClock clock;
  RunDirectory run{folder / "r", "toy", false, false, clock};
  run.start(example_info());
  run.interval_over(example_train());
  Position at = example_position();
  const auto step_at = [&](std::uint64_t step) {
    at.step = step;
    run.working(at);
    return status_of(run)["step"];
  };
  clock.advance({5});
  EXPECT_EQ(step_at(401), 400);
  clock.advance({0.5});
  EXPECT_EQ(step_at(402), 402);
  EXPECT_EQ(step_at(403), 402);
  EXPECT_EQ(lines_of(run.file("log.jsonl")).size(), 2u) << "the log has what happened only";
}

TEST(RunDirectory, NumbersNewFolders) {
  const TemporaryFolder folder;
  const InFolder here{folder.path()};
  RunDirectory first{"", "toy"};
  first.start(example_info());
  RunDirectory second{"", "recipes/toy.toml"};
  second.start(example_info());
  EXPECT_TRUE(first.path().starts_with("runs/toy-20")) << first.path();
  EXPECT_TRUE(first.path().ends_with("-1")) << first.path();
  EXPECT_TRUE(second.path().starts_with("runs/toy-20")) << second.path();
  EXPECT_TRUE(second.path().ends_with("-2")) << second.path();
  EXPECT_TRUE(fs::exists(second.file("run.json")));
}

TEST(RunDirectory, RefusesAFolderWithAnotherRun) {
  const TemporaryFolder folder;
  RunDirectory first{folder / "r", "toy"};
  refuse(folder / "r", {"a run is under way in '" + folder / "r" + "'", "--run-dir"});
  first.start(example_info());
  refuse(folder / "r", {"holds another run"});
  first.interval_over(example_train());
  EXPECT_EQ(lines_of(first.file("log.jsonl")).size(), 2u) << "the first run goes on undisturbed";
  fs::create_directory(folder / "old");
  put(folder / "old/run.json", "{}");
  refuse(folder / "old", {"holds another run", "leave out --run-dir"});
  EXPECT_FALSE(fs::exists(folder / "old/log.jsonl"));
}

// A link with a name of a run would lead the run, even a resumed one, to another file.
TEST(RunDirectory, WritesThroughNoLinkOfAnOwnName) {
  const TemporaryFolder folder;
  put(folder / "precious", "another's");
  for (const std::string name : {"run.json", "status.json", "log.jsonl", "weights.h5"}) {
    const std::string run = folder / ("of_" + name);
    fs::create_directory(run);
    fs::create_symlink(folder / "precious", fmt::format("{}/{}", run, name));
    const std::vector<std::string> words{fmt::format("'{}/{}' is a symbolic link", run, name), "--run-dir",
                                         "remove the link"};
    refuse(run, words);
    expect_error([&] { RunDirectory{run, "toy", true}; }, ExitCode::usage, words);
    EXPECT_FALSE(fs::exists(run + "/run.lock"));
  }
  EXPECT_EQ(get(folder / "precious"), "another's");
}

// What a run without its other files has left, or what a user has copied there.
TEST(RunDirectory, CheckpointsAreThoseOfARun) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "r/checkpoints/step-000000004");
  refuse(folder / "r", {"holds another run"});
  { const RunDirectory goes_on{folder / "r", "toy", true}; }
  EXPECT_TRUE(fs::exists(folder / "r/checkpoints/step-000000004"));
  EXPECT_FALSE(fs::exists(folder / "r/log.jsonl")) << "it has not started";
  fs::create_directory(folder / "linked");
  fs::create_directory_symlink(folder / "r/checkpoints", folder / "linked/checkpoints");
  refuse(folder / "linked", {"holds another run"});
  fs::create_directory(folder / "file");
  put(folder / "file/checkpoints", "");
  refuse(folder / "file", {"/file/checkpoints' is not a folder", "move it away"});
  fs::create_directories(folder / "empty/checkpoints");
  const RunDirectory takes{folder / "empty", "toy"};
}

// A log may be rotated, and a refused run removes nothing of the run that has the folder.
TEST(RunDirectory, RefusesARunUnderWayThoughItsLogHasGone) {
  const TemporaryFolder folder;
  RunDirectory first{folder / "r", "toy"};
  const std::string holder = fmt::format("a run is under way in '{}': pid {} on ", folder / "r", getpid());
  const auto go_on = [&] { RunDirectory{folder / "r", "toy", true}; };
  expect_error(go_on, ExitCode::usage, {holder});
  first.start(example_info());
  fs::rename(folder / "r/log.jsonl", folder / "r/log.jsonl.1");
  for (int i = 0; i < 2; ++i) expect_error(go_on, ExitCode::usage, {holder});
  first.interval_over(example_train());
  EXPECT_EQ(lines_of(folder / "r/log.jsonl.1").size(), 2u) << "the first run goes on undisturbed";
}

TEST(RunDirectory, KeepsItsLockForTheNextRun) {
  const TemporaryFolder folder;
  RunDirectory{folder / "r", "toy"}.start(example_info());
  EXPECT_TRUE(fs::exists(folder / "r/run.lock"));
  { RunDirectory{folder / "r", "toy", true}; }
  EXPECT_TRUE(fs::exists(folder / "r/run.lock")) << "that of the first";
  RunDirectory second{folder / "r", "toy", true};
  second.start(example_info());
}

TEST(RunDirectory, NamesALockThatIsNone) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::string& name, const std::string& why) {
    refuse(folder / name, {"a run cannot lock '", name + "/run.lock': " + why, "move it away"});
    EXPECT_FALSE(fs::exists(folder / (name + "/log.jsonl")));
  };
  fs::create_directories(folder / "folder/run.lock");
  expect("folder", "Is a directory");
  for (const char* const name : {"link", "pipe"}) fs::create_directory(folder / name);
  fs::create_symlink(folder / "precious", folder / "link/run.lock");
  expect("link", "Too many levels of symbolic links");
  EXPECT_FALSE(fs::exists(folder / "precious"));
  ASSERT_EQ(mkfifo((folder / "pipe/run.lock").c_str(), 0600), 0);
  expect("pipe", "a pipe or device");
}

TEST(RunLock, IsThatOfTheFileInPlaceThoughOneThatGivesUpRemovesIt) {
  const TemporaryFolder folder;
  RunLock first = take_run_lock(folder.path());
  ASSERT_EQ(first.error, 0);
  const RunLock second = take_run_lock(folder.path(), [&] { remove_run_lock(first); });
  EXPECT_EQ(second.error, 0);
  EXPECT_TRUE(fs::exists(second.path));
  RunLock third = take_run_lock(folder.path());
  EXPECT_EQ(third.error, EWOULDBLOCK);
  EXPECT_TRUE(third.holder.starts_with(fmt::format("pid {} on ", getpid()))) << third.holder;
  remove_run_lock(third);
  EXPECT_TRUE(fs::exists(second.path)) << "not its own";
}

TEST(RunDirectory, TakesWhatARunThatWasKilledAsItStartedHasLeft) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "dead");
  put(folder / "dead/run.lock", "pid 1 on far\n");
  put(folder / "dead/log.jsonl", "");
  RunDirectory next{folder / "dead", "toy"};
  refuse(folder / "dead", {"a run is under way"});
  next.start(example_info());
  EXPECT_EQ(lines_of(next.file("log.jsonl")).size(), 1u);
  fs::create_directory(folder / "old");
  put(folder / "old/log.jsonl", "{}\n");
  refuse(folder / "old", {"holds another run"});
  EXPECT_FALSE(fs::exists(folder / "old/run.lock"));
}

TEST(RunDirectory, RefusesASetOfShards) {
  const TemporaryFolder folder;
  put(folder / "manifest.json", "{\n  \"format\": \"lockstep-shards\",\n  \"version\": 1,\n");
  refuse(folder / "", {"holds a set of shards", "--run-dir", "leave out --run-dir"});
  EXPECT_FALSE(fs::exists(folder / "log.jsonl"));
}

TEST(RunDirectory, SharesAFolderWithWhatIsNoRun) {
  const TemporaryFolder folder;
  put(folder / "slurm-1.out", "text");
  RunDirectory run{folder.path(), "toy"};
  run.start(example_info());
  EXPECT_EQ(get(folder / "slurm-1.out"), "text");
}

TEST(RunDirectory, NamesWhatCannotBeWrittenTo) {
  const TemporaryFolder folder;
  put(folder / "file", "");
  refuse(folder / "file", {"Not a directory", "--run-dir"});
  refuse(folder / "file/r", {"Not a directory"});
  refuse(folder / std::string(300, 'n'), {"File name too long"});
  const InFolder here{folder.path()};
  const io::LockedOut me{folder};
  refuse(folder / "r", {"Permission denied", "--run-dir", "a writable folder"});
  refuse(folder.path(), {"Permission denied"});
  refuse("", {"Permission denied", "--run-dir"});
}

TEST(RunDirectory, LeavesNothingOfARunThatNeverStarted) {
  const TemporaryFolder folder;
  { const RunDirectory run{folder / "a/b", "toy"}; }
  EXPECT_EQ(folder.n_entries(), 0u);
  fs::create_directory(folder / "mine");
  { const RunDirectory run{folder / "mine", "toy"}; }
  EXPECT_TRUE(fs::is_empty(folder / "mine")) << "but the user's own folder";
  const InFolder here{folder.path()};
  { const RunDirectory run{"", "toy"}; }
  EXPECT_EQ(folder.n_entries(), 1u);
}

TEST(RunDirectory, ARunThatEndsEarlyHasFailed) {
  const TemporaryFolder folder;
  {
    RunDirectory run{folder / "r", "toy"};
    run.start(example_info());
    run.interval_over(example_train());
  }
  const Json status = Json::parse(get(folder / "r/status.json"));
  EXPECT_EQ(status["state"], "failed");
  EXPECT_EQ(status["step"], 400);
}

TEST(RunDirectory, TellsWhyItFailed) {
  const TemporaryFolder folder;
  {
    RunDirectory run{folder / "r", "toy"};
    run.start(example_info());
    run.interval_over(example_train());
    Position at = example_position();
    at.step = 432;
    run.fail(at, "error: stalled\n  rank 1\n  waiting for it: rank 0\n");
  }
  const Json status = Json::parse(get(folder / "r/status.json"));
  EXPECT_EQ(status["state"], "failed");
  EXPECT_EQ(status["message"], "stalled; rank 1; waiting for it: rank 0");
  EXPECT_EQ(status["step"], 432);
  EXPECT_EQ(status["loss"], 0.125);
}

TEST(RunDirectory, MakesNothingAnewWhereItsFolderWas) {
  const TemporaryFolder folder;
  RunDirectory run{folder / "r", "toy"};
  run.start(example_info());
  EXPECT_NO_THROW(run.require_place());
  fs::rename(folder / "r", folder / "moved");
  run.interval_over(example_train());
  EXPECT_FALSE(fs::exists(folder / "r"));
  EXPECT_TRUE(run.is_place_lost());
  expect_error([&] { run.require_place(); }, ExitCode::system, {"the run has lost its folder", "--run-dir"});
  ASSERT_TRUE(run.complaint());
  RunDirectory next{folder / "r", "toy"};
  next.start(example_info());
  const std::string before = get(folder / "r/status.json");
  run.ended(example_final());
  EXPECT_EQ(get(folder / "r/status.json"), before) << "that of the next run";
  EXPECT_EQ(lines_of(folder / "moved/log.jsonl").back()["kind"], "final");
}

TEST(RunDirectory, DoesNotStartWithoutItsLock) {
  const TemporaryFolder folder;
  RunDirectory run{folder / "r", "toy"};
  fs::remove(folder / "r/run.lock");
  expect_error([&] { run.start(example_info()); }, ExitCode::system, {"run.lock, was renamed, removed"});
  EXPECT_FALSE(fs::exists(folder / "r/run.json"));
}

TEST(RunDirectory, RemovesWhatAKilledRunHasLeft) {
  const TemporaryFolder folder;
  RunDirectory{folder / "r", "toy"}.start(example_info());
  const std::string left = core::make_temporary_file(folder / "r/status.json").path;
  const core::Temporary written = core::make_temporary_file(folder / "r/status.json");
  ASSERT_TRUE(fs::exists(left) && written);
  RunDirectory{folder / "r", "toy", true}.start(example_info());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(written.path)) << "whoever still writes it goes on";
}

TEST(RunDirectory, NamesTheLimitOfFileSizes) {
  const TemporaryFolder folder;
  {
    RunDirectory run{folder / "r", "toy"};
    const io::FullDisk full{0};
    expect_error([&] { run.start(example_info()); }, ExitCode::system,
                 {"run.json': File too large", "raise the limit of file sizes of a process: ulimit -f"});
  }
  EXPECT_FALSE(fs::exists(folder / "r"));
}

TEST(RunDirectory, AFullDiskCostsLinesButNotTheRun) {
  const TemporaryFolder folder;
  RunDirectory run{folder / "r", "toy"};
  run.start(example_info());
  run.interval_over(example_train());
  const std::string before = get(run.file("log.jsonl"));
  testing::internal::CaptureStderr();
  {
    const io::FullDisk full{before.size() + 20};
    run.interval_over(example_train());
    run.interval_over(example_train());
  }
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_EQ(get(run.file("log.jsonl")), before) << "half a line is none";
  EXPECT_NE(warning.find("lacks all lines"), std::string::npos) << warning;
  EXPECT_EQ(warning.find("lacks all lines"), warning.rfind("lacks all lines")) << "told once: " << warning;
  EXPECT_EQ(status_of(run)["state"], "running") << "the old status is still whole";
  run.evaluated(example_evaluation());
  EXPECT_EQ(lines_of(run.file("log.jsonl")).back()["kind"], "evaluation");
}

}  // namespace
}  // namespace lockstep::training
