#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "io/folder.hpp"
#include "training/run/directory.hpp"
#include "training/run/status.hpp"
#include "unit/io/temporary_folder.hpp"
#include "unit/training/run/example_run.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using io::get;
using io::put;
using io::TemporaryFolder;
using Json = nlohmann::json;

Json status_in(const std::string& folder) { return Json::parse(get(folder + "/status.json")); }

void put_link(const std::string& target, const std::string& name) {
  fs::remove(name);
  fs::create_symlink(target, name);
}

TEST(RunDirectory, OthersMayTellThatARunHasFailed) {
  const TemporaryFolder folder;
  RunDirectory run{folder / "r", "toy"};
  run.start(example_info());
  run.interval_over(example_train());
  const io::Folder opened{run.path()};
  mark_failed(opened, "rank 1 has died");
  const Json before = status_in(run.path());
  EXPECT_EQ(before["state"], "failed");
  EXPECT_EQ(before["message"], "rank 1 has died");
  EXPECT_EQ(before["step"], 400);
  EXPECT_TRUE(before["eta_s"].is_null());
  mark_failed(opened, "told by another one");
  EXPECT_EQ(status_in(run.path()), before);
  FinalRecord stopped = example_final();
  stopped.state = RunStatus::stopped;
  stopped.message = "signal 15 (SIGTERM)";
  run.ended(stopped);
  EXPECT_EQ(status_in(run.path()), before) << "the launcher's signal came because rank 1 had died";
  run.ended(example_final());
  mark_noted_failed(note_of(opened), "too late");
  EXPECT_EQ(status_in(run.path())["state"], "finished");
  const io::Folder none{folder.path()};
  mark_failed(none, "nobody");
  EXPECT_FALSE(fs::exists(folder / "status.json"));
  put(folder / "status.json", "{");
  mark_failed(none, "nobody");
  EXPECT_EQ(get(folder / "status.json"), "{");
}

// Its name may be that of another run by then.
TEST(RunDirectory, OthersTellOfTheirRunThoughItsFolderWasMoved) {
  const TemporaryFolder folder;
  RunDirectory run{folder / "r", "toy"};
  run.start(example_info());
  const io::Folder opened{folder / "r"};
  const std::string note = note_of(opened);
  fs::rename(folder / "r", folder / "moved");
  mark_noted_failed(note, "rank 1 has died");
  EXPECT_FALSE(fs::exists(folder / "r"));
  RunDirectory next{folder / "r", "toy"};
  next.start(example_info());
  mark_noted_failed(note, "rank 1 has died");
  mark_failed(opened, "rank 1 has died");
  EXPECT_EQ(status_in(folder / "r")["state"], "running");
  EXPECT_EQ(status_in(folder / "moved")["message"], "rank 1 has died");
  mark_noted_failed(note_of(io::Folder{folder / "r"}), "rank 2 has died");
  EXPECT_EQ(status_in(folder / "r")["message"], "rank 2 has died");
}

// Whoever may write to the folder could otherwise let the run write to any file of its user.
TEST(RunDirectory, FollowsNoLinkThatIsPutInThePlaceOfAFileDuringTheRun) {
  const TemporaryFolder folder;
  const std::string precious = R"({"state": "running", "faults": []})", failed = R"({"state": "failed"})";
  put(folder / "precious", precious);
  put(folder / "failed", failed);
  RunDirectory run{folder / "r", "toy"};
  for (const char* const name : {"run.json", "status.json"}) put_link("../precious", run.file(name));
  run.start(example_info());
  EXPECT_EQ(Json::parse(get(run.file("run.json")))["recipe_name"], "toy");
  put_link("../failed", run.file("status.json"));
  run.interval_over(example_train());
  EXPECT_EQ(status_in(run.path())["step"], 400) << "what others have written there is not read either";
  put_link("../precious", run.file("status.json"));
  mark_failed(io::Folder{run.path()}, "rank 1 has died");
  EXPECT_TRUE(fs::is_symlink(run.file("status.json")));
  EXPECT_EQ(state_in(run.path()), "");
  put_link("../precious", run.file("log.jsonl"));
  run.ended(example_final());
  EXPECT_EQ(status_in(run.path())["state"], "finished");
  for (const char* const name : {"run.json", "status.json"})
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(run.file(name)))) << name;
  EXPECT_EQ(get(folder / "precious"), precious);
  EXPECT_EQ(get(folder / "failed"), failed);
}

// No run takes such a lock, so nobody else has the folder.
TEST(RunDirectory, TellsThatItHasFailedThoughItsLockBecameALink) {
  const TemporaryFolder folder;
  put(folder / "elsewhere", "");
  RunDirectory run{folder / "r", "toy"};
  run.start(example_info());
  put_link("../elsewhere", run.file("run.lock"));
  run.ended(example_final());
  const Json status = status_in(run.path());
  EXPECT_EQ(status["state"], "failed");
  EXPECT_NE(status["message"].get<std::string>().find("the run has lost its folder"), std::string::npos) << status;
  EXPECT_EQ(get(folder / "elsewhere"), "");
}

TEST(RunDirectory, LeavesTheStatusOfTheRunThatHasItsFolderNow) {
  const TemporaryFolder folder;
  RunDirectory run{folder / "r", "toy"};
  run.start(example_info());
  fs::remove(run.file("run.lock"));
  RunDirectory next{folder / "r", "toy", true};
  next.start(example_info());
  run.ended(example_final());
  EXPECT_EQ(status_in(folder / "r")["state"], "running");
}

TEST(RunDirectory, IsLostIfOtherCheckpointsTakeThePlaceOfItsOwn) {
  const TemporaryFolder folder;
  for (const char* const name : {"mine", "others", "linked"}) fs::create_directory(folder / name);
  const auto expect_lost = [](RunDirectory& run) {
    io::expect_error([&] { run.require_place(); }, core::ExitCode::system,
                     {"the run has lost its folder", "/checkpoints'", "--run-dir"});
    EXPECT_FALSE(run.is_place_lost()) << "its status can be written";
  };
  RunDirectory run{folder / "r", "toy"};
  run.start(example_info());
  fs::create_directory(run.file("checkpoints"));
  EXPECT_NO_THROW(run.require_place()) << "the run has made it";
  fs::remove(run.file("checkpoints"));
  EXPECT_NO_THROW(run.require_place()) << "it makes it again";
  fs::create_directory_symlink("../others", run.file("checkpoints"));
  expect_lost(run);
  fs::create_directory_symlink("../mine", folder / "linked/checkpoints");
  RunDirectory linked{folder / "linked", "toy", true};
  linked.start(example_info());
  EXPECT_NO_THROW(linked.require_place()) << "a user has moved them before the run";
  put_link("../others", linked.file("checkpoints"));
  expect_lost(linked);
}

}  // namespace
}  // namespace lockstep::training
