// Whole runs by a clock that advances by a constant at each look: the number of looks does not depend on speed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "checkpoint/folder.hpp"
#include "checkpoint/reader.hpp"
#include "runtime/communicator_threads.hpp"
#include "runtime/session.hpp"
#include "runtime/watch/board.hpp"
#include "support/lockstep_program.hpp"
#include "support/set_clock.hpp"
#include "support/text.hpp"
#include "training/command.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::support {
namespace {

using io::get;
using io::TemporaryFolder;
using Json = nlohmann::json;

/// `lockstep train` with `words` before those of --run-dir.
std::vector<std::string> train(const std::string& words, const std::string& run) {
  std::vector<std::string> all = words_of("train " + words + " --batch 32 --deterministic --threads 1 --run-dir");
  all.push_back(run);
  return all;
}

/// The smallest of the recipes: 16 steps an epoch.
std::vector<std::string> toy(const std::string& words, const std::string& run) {
  return train("toy --synthetic-samples 512 --save-every 0 --digest " + words, run);
}

std::vector<Json> log_lines(const std::string& run, const std::string& kind) {
  std::vector<Json> lines;
  std::istringstream text{get(run + "/log.jsonl")};
  for (std::string line; std::getline(text, line);)
    if (Json json = Json::parse(line); json["kind"] == kind) lines.push_back(std::move(json));
  return lines;
}

Json status_of(const std::string& run) { return Json::parse(get(run + "/status.json")); }

/// Expects that the run stopped in time, with a whole checkpoint.
void expect_stopped(const Ended& ended, const std::string& run, double within_s) {
  EXPECT_EQ(ended.exit_code, 85) << ended.err;
  EXPECT_TRUE(has(ended.out, "its time limit is near")) << ended.out;
  const Json status = status_of(run);
  EXPECT_EQ(status["state"], "stopped") << status;
  EXPECT_LE(status["elapsed_s"], within_s) << status;
  const auto checkpoints = checkpoint::find_checkpoints(run);
  ASSERT_FALSE(checkpoints.empty());
  const checkpoint::Checkpoint newest{checkpoints.front()};
  for (std::size_t i = 0; i < newest.n_files(); ++i) newest.verify(i);
}

class BatchJob : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const variable : {"SLURM_JOB_END_TIME", "SLURM_JOB_ID", "PBS_JOBID"}) unsetenv(variable);
  }
  void TearDown() override { SetUp(); }

  static void set_end(const core::Clock& clock, int from_now_s) {
    setenv("SLURM_JOB_END_TIME", std::to_string(clock.date() + from_now_s).c_str(), 1);
  }

  TemporaryFolder folder_{};
};

using TimeLimitOfRun = BatchJob;

TEST_F(TimeLimitOfRun, StopsItInTimeWithACheckpoint) {
  for (const std::vector<int>& nodes : {std::vector<int>{0}, {0, 0}}) {
    const SetClock clock{{0.05 / static_cast<double>(nodes.size())}};
    const std::string run = folder_ / std::to_string(nodes.size());
    const Ended ended = run_lockstep(toy("--epochs 30000 --time-limit 10", run), nodes, clock);
    expect_stopped(ended, run, 10);
    EXPECT_TRUE(has(ended.err, " s are left; then the run saves a checkpoint and stops")) << ended.err;
    EXPECT_TRUE(has(ended.err, "epoch 2/30000  will ")) << ended.err;
  }
}

TEST_F(TimeLimitOfRun, IsThatOfTheJobUnlessItIsNamed) {
  const SetClock clock{{0.05}};
  set_end(clock, 9);
  expect_stopped(run_lockstep(toy("--epochs 30000", folder_ / "job"), {0}, clock), folder_ / "job", 9);
  set_end(clock, 3);
  const Ended none = run_lockstep(toy("--epochs 2 --time-limit 0", folder_ / "none"), {0}, clock);
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_FALSE(has(none.err, "are left")) << none.err;
}

TEST_F(TimeLimitOfRun, ThatIsTooShortIsRefusedButOfAJobTold) {
  const SetClock clock{{0.001}};
  const Ended refused = run_lockstep(toy("--epochs 2 --time-limit 1", folder_ / "refused"), {0, 0}, clock);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(has(refused.err, "1.00 s is too short for a step and a checkpoint")) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
  const Ended whole = run_lockstep(toy("--epochs 2", folder_ / "whole"), {0}, clock);
  set_end(clock, 2);
  const Ended little = run_lockstep(toy("--epochs 2", folder_ / "little"), {0}, clock);
  EXPECT_EQ(little.exit_code, 0);
  EXPECT_TRUE(has(little.err, " s that are left are too short for a checkpoint")) << little.err;
  EXPECT_NE(whole.line("digest"), "");
  EXPECT_EQ(little.line("digest"), whole.line("digest"));
}

TEST_F(TimeLimitOfRun, InPartsItComesToTheSame) {
  const SetClock clock{{0.02}};
  const Ended whole = run_lockstep(toy("--epochs 8", folder_ / "whole"), {0}, clock);
  EXPECT_EQ(whole.exit_code, 0);
  const std::vector<std::string> in_parts = toy("--epochs 8 --time-limit 4 --resume auto", folder_ / "parts");
  int n_parts = 1;
  Ended part = run_lockstep(in_parts, {0}, clock);
  for (; part.exit_code == 85 && n_parts < 50; ++n_parts) part = run_lockstep(in_parts, {0}, clock);
  EXPECT_EQ(part.exit_code, 0) << part.err;
  EXPECT_GT(n_parts, 2);
  EXPECT_NE(whole.line("digest"), "");
  EXPECT_EQ(part.line("digest"), whole.line("digest"));
  EXPECT_EQ(status_of(folder_ / "parts")["state"], "finished");
}

// No time passes by this clock: the run stops because its longest step leaves too little.
TEST_F(TimeLimitOfRun, KeepsThreeTimesTheLongestStepForTheEnd) {
  const SetClock still;
  const std::string run = folder_ / "r";
  expect_stopped(run_lockstep(toy("--epochs 4 --time-limit 4 --inject late:0:training:5:1s", run), {0}, still), run, 4);
  EXPECT_EQ(status_of(run)["step"], 7);  // the next step knows a step's time, and stops act one step late
}

TEST_F(TimeLimitOfRun, LeavesAnEvaluationUnderWay) {
  const SetClock clock{{0.01}};
  const std::string run = folder_ / "r";
  expect_stopped(run_lockstep(train("digits --synthetic-samples 8000 --max-steps 1 --time-limit 3", run), {0}, clock),
                 run, 3);
  EXPECT_EQ(status_of(run)["step"], 1);
  EXPECT_TRUE(log_lines(run, "evaluation").empty());
}

TEST_F(TimeLimitOfRun, IsATimeAndGoesWithTraining) {
  EXPECT_EQ(run_lockstep(toy("--time-limit soon", folder_ / "r")).exit_code, 2);
  const Ended refused = run_lockstep(train("digits --evaluate-only --time-limit 5", folder_ / "r"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(has(refused.err, "--time-limit needs training")) << refused.err;
}

TEST(Saving, IsByTheClockWhereItsIntervalIsATime) {
  const TemporaryFolder folder;
  const SetClock clock{{0.05}};
  const Ended ended = run_lockstep(toy("--epochs 4 --save-every=2s --keep 100", folder / "r"), {0}, clock);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const std::vector<Json> saves = log_lines(folder / "r", "save");
  ASSERT_GE(saves.size(), 3u);
  EXPECT_GE(saves[0]["elapsed_s"], 2);
  for (std::size_t i = 1; i + 1 < saves.size(); ++i) {  // the last one is that of the end
    const double pause_s = saves[i]["elapsed_s"].get<double>() - saves[i - 1]["elapsed_s"].get<double>();
    EXPECT_GE(pause_s, 2) << i;
    EXPECT_LE(pause_s, 3) << i;
  }
  const SetClock still;
  const Ended rare = run_lockstep(toy("--epochs 4 --save-every=2s", folder / "still"), {0}, still);
  EXPECT_EQ(rare.exit_code, 0);
  EXPECT_NE(rare.line("digest"), "");
  EXPECT_EQ(rare.line("digest"), ended.line("digest"));
  EXPECT_EQ(log_lines(folder / "still", "save").size(), 1u);
}

/// Records at each look at the clock how often a rank has reported progress since it began to train.
class BeatCounter final : public SetClock {
 public:
  explicit BeatCounter(runtime::LauncherHint hint) {
    hint.rank = hint.local_rank = 1;
    board_ = runtime::Board::join(hint);
  }

  [[nodiscard]] core::Seconds now() const noexcept override {
    const runtime::BoardSlot& slot = board_->slots()[0];
    if (static_cast<runtime::Activity>(slot.phase.load()) == runtime::Activity::training)
      most_ = std::max(most_.load(), slot.position.load() & 0xffffffff);
    return SetClock::now();
  }
  [[nodiscard]] std::uint64_t most() const noexcept { return most_; }

 private:
  std::unique_ptr<runtime::Board> board_{};
  mutable std::atomic<std::uint64_t> most_{0};
};

std::uint64_t n_beats(const std::string& n_parts) {
  const TemporaryFolder folder;
  const runtime::LauncherHint hint{"test", folder.path(), 0, 2, 0, 2};
  const BeatCounter clock{hint};
  const auto invocation = training::parse_command_line(
      train("digits --synthetic-samples 40 --max-steps 1 --accumulate " + n_parts, folder / "r"));
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  runtime::run_as_threads({.nodes = {0}, .patience = {300}}, [&](runtime::Communicator& world) {
    const runtime::Session session{world, clock};
    runtime::Watchdog watchdog{hint, {1000}, nullptr, clock};
    EXPECT_EQ(training::run_on_ranks(session, invocation, {}, watchdog), 0);
  });
  testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  return clock.most();
}

TEST(Step, EachLayerOfEachPartIsProgressSoThatALongOneIsNoStall) {
  const std::uint64_t in_one = n_beats("1"), in_four = n_beats("4");
  constexpr std::uint64_t n_layers = 9;  // of digits, with the input
  EXPECT_GE(in_one, 2 * n_layers);
  EXPECT_GE(in_four - in_one, 3 * 2 * n_layers);
}

}  // namespace
}  // namespace lockstep::support
