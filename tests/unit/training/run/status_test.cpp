#include "training/run/status.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "training/run/directory.hpp"
#include "unit/io/temporary_folder.hpp"
#include "unit/training/run/example_run.hpp"

namespace lockstep::training {
namespace {

using Json = nlohmann::json;

Json status_of_run(const std::string& folder) { return Json::parse(io::get(folder + "/status.json")); }

// The run has seen `running`, a guard tells the failure, and then the run writes.
TEST(Status, AFailureOfOthersStaysThoughTheRunWritesAfterIt) {
  for (const RunStatus state : {RunStatus::running, RunStatus::stopped}) {
    const io::TemporaryFolder folder;
    RunDirectory run{folder / "r", "toy"};
    run.start(example_info());
    const io::Folder opened{run.path()};
    ASSERT_FALSE(was_ended_by_others(opened));
    mark_failed(opened, "error: rank 1 has died\n  fix: none\n");
    write_status(opened, {.state = state, .message = "the run's own", .at = {.step = 7}, .eta = core::Seconds{9}});
    const Json status = status_of_run(run.path());
    EXPECT_EQ(status["state"], "failed");
    EXPECT_EQ(status["message"], "rank 1 has died; fix: none");
    EXPECT_EQ(status["step"], 7);
    EXPECT_TRUE(status["eta_s"].is_null());
    EXPECT_TRUE(was_ended_by_others(opened));
  }
}

// The run has replaced `failed` and is killed before it looks again; its guard tells of the signal.
TEST(Status, TheFailureThatWasToldFirstIsTheCause) {
  const io::TemporaryFolder folder;
  RunDirectory run{folder / "r", "toy"};
  run.start(example_info());
  const io::Folder opened{run.path()};
  const std::string running = io::get(run.file("status.json"));
  mark_failed(opened, "rank 1 has died");
  io::put(run.file("status.json"), running);
  mark_failed(opened, "ended at once by signal 15 (Terminated)");
  EXPECT_EQ(status_of_run(run.path())["state"], "failed");
  EXPECT_EQ(status_of_run(run.path())["message"], "rank 1 has died");
}

// A run that has failed or finished by itself knows better.
TEST(Status, ItsOwnEndReplacesAFailureOfOthers) {
  for (const RunStatus state : {RunStatus::failed, RunStatus::finished}) {
    const io::TemporaryFolder folder;
    RunDirectory run{folder / "r", "toy"};
    run.start(example_info());
    const io::Folder opened{run.path()};
    mark_failed(opened, "rank 1 has died");
    write_status(opened, {.state = state, .message = "the run's own"});
    EXPECT_EQ(status_of_run(run.path())["state"], name(state));
    EXPECT_EQ(status_of_run(run.path())["message"], "the run's own");
  }
}

TEST(Status, TheNextRunOfAFolderIsNotFailedByTheLastOne) {
  const io::TemporaryFolder folder;
  {
    RunDirectory run{folder / "r", "toy"};
    run.start(example_info());
    mark_failed(io::Folder{run.path()}, "rank 1 has died");
  }
  RunDirectory next{folder / "r", "toy", true};
  next.start(example_info());
  next.interval_over(example_train());
  EXPECT_EQ(status_of_run(next.path())["state"], "running");
}

// A guard of a killed run may tell its failure while the next one prepares.
TEST(Status, AFailureToldBeforeARunBeginsIsNotItsOwn) {
  const io::TemporaryFolder folder;
  {
    RunDirectory run{folder / "r", "toy"};
    run.start(example_info());
  }
  io::put(folder / "r/status.json", R"({"state": "running"})");  // as a killed run leaves it
  RunDirectory next{folder / "r", "toy", true};
  const io::Folder opened{next.path()};
  mark_failed(opened, "rank 1 has died");
  EXPECT_TRUE(was_ended_by_others(opened));
  next.start(example_info());
  EXPECT_EQ(status_of_run(next.path())["state"], "running");
  next.interval_over(example_train());
  EXPECT_EQ(status_of_run(next.path())["state"], "running");
}

}  // namespace
}  // namespace lockstep::training
