// Whole runs of one rank in this process, by a clock that moves on by as much at each look: how often a run looks does
// not depend on how fast it is.
#include "training/train/train.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "checkpoint/folder.hpp"
#include "checkpoint/reader.hpp"
#include "core/flags.hpp"
#include "nn/device.hpp"
#include "runtime/watch/board.hpp"
#include "support/set_clock.hpp"
#include "unit/io/temporary_folder.hpp"
#include "unit/training/recipe/fixture.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using io::get;
using io::TemporaryFolder;
using support::SetClock;
using Json = nlohmann::json;

struct Ended {
  int exit_code;
  std::string out, err;

  [[nodiscard]] std::string digest() const {
    const std::size_t begin = out.find("digest ");
    return begin == out.npos ? "none" : out.substr(begin, out.find('\n', begin) - begin);
  }
};

struct Request {
  ResolvedRecipe resolved{};
  RunOptions options{};
};

Request request_of(Words words) {
  words.insert(words.end(), {"--device", "host", "--batch", "32", "--deterministic", "--threads", "1"});
  Request request;
  RecipeWords of_recipe;
  core::Flags flags{"lockstep train"};
  declare_recipe(flags, of_recipe);
  declare_run(flags, request.options);
  flags.parse(words);
  request.resolved = resolve_recipe(of_recipe);
  check_run(request.options, request.resolved);
  return request;
}

Ended train_by(const core::Clock& clock, const Words& words, const runtime::LauncherHint& hint = {},
               core::Seconds timeout = {0}) {
  const Request request = request_of(words);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ended ended{};
  {
    runtime::Watchdog watchdog{hint, timeout, nullptr, clock};
    const runtime::Session session{runtime::Alone::without_mpi};
    ended.exit_code = train(request.resolved, request.options, session, watchdog, clock);
  }
  ended.out = testing::internal::GetCapturedStdout();
  ended.err = testing::internal::GetCapturedStderr();
  return ended;
}

/// The smallest of the recipes: 16 steps an epoch.
Words of_toy(Words more) {
  more.insert(more.begin(), {"toy", "--synthetic-samples", "512", "--save-every", "0", "--digest"});
  return more;
}

std::vector<Json> log_lines(const std::string& run, const std::string& kind) {
  std::vector<Json> lines;
  std::istringstream text{get(run + "/log.jsonl")};
  for (std::string line; std::getline(text, line);)
    if (Json json = Json::parse(line); json["kind"] == kind) lines.push_back(std::move(json));
  return lines;
}

Json status_of(const std::string& run) { return Json::parse(get(run + "/status.json")); }

/// Kokkos starts once in a process: for all runs.
class HostForAll final : public testing::Environment {
 public:
  void SetUp() override { device_ = nn::open_device(1); }
  void TearDown() override { device_.reset(); }

 private:
  std::unique_ptr<nn::Device> device_{};
};
[[maybe_unused]] const auto* const host_for_all = testing::AddGlobalTestEnvironment(new HostForAll);

/// It was in time, and has a whole checkpoint.
void expect_stopped(const Ended& ended, const std::string& run, double within_s) {
  EXPECT_EQ(ended.exit_code, 85) << ended.err;
  EXPECT_TRUE(has(ended.out, "its time is nearly over")) << ended.out;
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

  static void set_end(int from_now_s) {
    setenv("SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + from_now_s).c_str(), 1);
  }

  TemporaryFolder folder_{};
};

using TimeLimitOfRun = BatchJob;

TEST_F(TimeLimitOfRun, StopsItInTimeWithACheckpoint) {
  const SetClock clock{{0.05}};
  const Ended ended = train_by(clock, of_toy({"--epochs", "30000", "--time-limit", "10", "--run-dir", folder_ / "r"}));
  expect_stopped(ended, folder_ / "r", 10);
  EXPECT_TRUE(has(ended.err, " s are left, then the run stops, with a checkpoint")) << ended.err;
  EXPECT_TRUE(has(ended.err, "epoch 2/30000  will ")) << ended.err;
}

TEST_F(TimeLimitOfRun, IsThatOfTheJobUnlessItIsNamed) {
  const SetClock clock{{0.05}};
  set_end(9);
  expect_stopped(train_by(clock, of_toy({"--epochs", "30000", "--run-dir", folder_ / "job"})), folder_ / "job", 9);
  set_end(3);
  const Ended none = train_by(clock, of_toy({"--epochs", "2", "--time-limit", "0", "--run-dir", folder_ / "none"}));
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_FALSE(has(none.err, "are left")) << none.err;
}

TEST_F(TimeLimitOfRun, ThatIsTooShortIsRefusedButOfAJobTold) {
  const SetClock clock{{0.001}};
  const Ended too_short =
      train_by(clock, of_toy({"--epochs", "2", "--time-limit", "1", "--run-dir", folder_ / "refused"}));
  EXPECT_EQ(too_short.exit_code, 2);
  EXPECT_TRUE(has(too_short.err, "1.00 s are too little time for a step and a checkpoint")) << too_short.err;
  EXPECT_FALSE(fs::exists(folder_ / "refused"));
  const Ended whole = train_by(clock, of_toy({"--epochs", "2", "--run-dir", folder_ / "whole"}));
  set_end(2);
  const Ended little = train_by(clock, of_toy({"--epochs", "2", "--run-dir", folder_ / "little"}));
  EXPECT_EQ(little.exit_code, 0);
  EXPECT_TRUE(has(little.err, "warning: too little time is left for a checkpoint")) << little.err;
  EXPECT_EQ(little.digest(), whole.digest());
}

TEST_F(TimeLimitOfRun, InPartsItComesToTheSame) {
  const SetClock clock{{0.02}};
  const Ended whole = train_by(clock, of_toy({"--epochs", "8", "--run-dir", folder_ / "whole"}));
  EXPECT_EQ(whole.exit_code, 0);
  const Words in_parts{"--epochs", "8", "--time-limit", "4", "--resume", "auto", "--run-dir", folder_ / "parts"};
  int n_parts = 1;
  Ended part = train_by(clock, of_toy(in_parts));
  for (; part.exit_code == 85 && n_parts < 50; ++n_parts) part = train_by(clock, of_toy(in_parts));
  EXPECT_EQ(part.exit_code, 0) << part.err;
  EXPECT_EQ(part.digest(), whole.digest());
  EXPECT_GT(n_parts, 2);
  EXPECT_EQ(status_of(folder_ / "parts")["state"], "finished");
}

TEST_F(TimeLimitOfRun, LeavesAnEvaluationUnderWay) {
  const SetClock clock{{0.01}};
  const Ended ended = train_by(clock, {"digits", "--synthetic-samples", "8000", "--max-steps", "1", "--time-limit", "3",
                                       "--run-dir", folder_ / "r"});
  expect_stopped(ended, folder_ / "r", 3);
  EXPECT_EQ(status_of(folder_ / "r")["step"], 1);
  EXPECT_TRUE(log_lines(folder_ / "r", "evaluation").empty());
}

TEST_F(TimeLimitOfRun, IsATimeAndGoesWithTraining) {
  EXPECT_TRUE(has(refused([] { static_cast<void>(request_of({"toy", "--time-limit", "soon"})); }), "--time-limit"));
  EXPECT_TRUE(has(refused([] {
                    static_cast<void>(request_of({"digits", "--evaluate-only", "--time-limit", "5"}));
                  }),
                  "--time-limit goes with training"));
}

using Saving = BatchJob;

TEST_F(Saving, IsByTheClockWhereItsIntervalIsATime) {
  const SetClock clock{{0.05}};
  const Ended ended =
      train_by(clock, of_toy({"--epochs", "4", "--save-every", "2 s", "--keep", "100", "--run-dir", folder_ / "r"}));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const std::vector<Json> saves = log_lines(folder_ / "r", "save");
  ASSERT_GE(saves.size(), 3u);
  EXPECT_GE(saves[0]["elapsed_s"], 2);
  for (std::size_t i = 1; i + 1 < saves.size(); ++i) {  // the last is that of the end
    const double pause_s = saves[i]["elapsed_s"].get<double>() - saves[i - 1]["elapsed_s"].get<double>();
    EXPECT_GE(pause_s, 2) << i;
    EXPECT_LE(pause_s, 3) << i;
  }
  const SetClock still;
  EXPECT_EQ(train_by(still, of_toy({"--epochs", "4", "--save-every", "2 s", "--run-dir", folder_ / "still"})).exit_code,
            0);
  EXPECT_EQ(log_lines(folder_ / "still", "save").size(), 1u);
}

/// Sees at each look at the clock how often a rank has told of progress since it began to train.
class BeatCounter final : public SetClock {
 public:
  explicit BeatCounter(const runtime::LauncherHint& hint) {
    runtime::LauncherHint other = hint;
    other.rank = other.local_rank = 1;
    board_ = runtime::Board::join(other);
  }

  [[nodiscard]] core::Seconds now() const noexcept override {
    const runtime::BoardSlot& slot = board_->slots()[0];
    if (static_cast<runtime::Activity>(slot.phase.load()) == runtime::Activity::training)
      most_ = std::max(most_, slot.position.load() & 0xffffffff);
    return SetClock::now();
  }
  [[nodiscard]] std::uint64_t most() const noexcept { return most_; }

 private:
  std::unique_ptr<runtime::Board> board_{};
  mutable std::uint64_t most_ = 0;
};

std::uint64_t n_beats(const char* n_parts) {
  const TemporaryFolder folder;
  const runtime::LauncherHint hint{"test", folder.path(), 0, 2, 0, 2};
  const BeatCounter clock{hint};
  const Ended ended = train_by(
      clock,
      {"digits", "--synthetic-samples", "40", "--max-steps", "1", "--accumulate", n_parts, "--run-dir", folder / "r"},
      hint, {1000});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return clock.most();
}

TEST(Step, EachLayerOfEachPartIsProgressSoThatALongOneIsNoStall) {
  const std::uint64_t in_one = n_beats("1"), in_four = n_beats("4");
  constexpr std::uint64_t n_layers = 9;  // of digits, with the input
  EXPECT_GE(in_one, 2 * n_layers);
  EXPECT_GE(in_four - in_one, 3 * 2 * n_layers);
}

}  // namespace
}  // namespace lockstep::training
