#include "training/run/text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "training/run/display.hpp"
#include "unit/training/run/example_run.hpp"

namespace lockstep::training {
namespace {

TEST(RunText, ProgressIsOneLine) {
  EXPECT_EQ(progress_text(example_train(), example_goal),
            "epoch 3/50  25 %  12800 samples/s  loss 0.125  lr 0.001  ETA 0:00:06  step p50 4.05 ms; mean data wait "
            "0.200, communication 0.800");
  TrainRecord record = example_train();
  record.eta.reset();
  record.samples_per_s = 3.14159;
  record.loss = std::numeric_limits<double>::quiet_NaN();
  const std::string text = progress_text(record, example_goal);
  EXPECT_NE(text.find("  3.14 samples/s  loss nan  "), std::string::npos) << text;
  EXPECT_NE(text.find("ETA -"), std::string::npos) << text;
  record.first_epoch = record.at.epoch;
  EXPECT_EQ(progress_text(record, example_goal), text);
  record.first_epoch = 1;
  EXPECT_NE(progress_text(record, example_goal).find("  loss nan of epochs 1 to 3  "), std::string::npos) << text;
}

TEST(RunText, TheStartSaysWhatIsAboutToHappen) {
  StartRecord record{.model = "mnist_cnn",
                     .n_parameters = 1'199'882,
                     .precision = "bf16",
                     .data = "digits",
                     .n_samples = 60'000,
                     .shape = "1x28x28",
                     .n_evaluation = 10'000,
                     .n_ranks = 4,
                     .n_nodes = 2,
                     .global_batch = 64,
                     .memory = {123'456'789},
                     .folder = "runs/mnist_cnn-1",
                     .promise = "bit-identical to an uninterrupted run, but only on 4 ranks"};
  EXPECT_EQ(start_text(record, {.n_epochs = 3, .n_samples = 180'000, .n_steps = 2814}),
            "model   mnist_cnn: 1199882 parameters, bf16\n"
            "data    digits: 60000 samples of 1x28x28, evaluated on 10000\n"
            "ranks   4 ranks on 2 nodes\n"
            "steps   2814 of 64 samples in 3 epochs\n"
            "resume  bit-identical to an uninterrupted run, but only on 4 ranks\n"
            "memory  123 MB of host memory per rank for activations, parameters, gradients and the optimizer\n"
            "run     runs/mnist_cnn-1");
  EXPECT_NE(start_text(record, {.n_epochs = 3, .n_samples = 64'064, .n_steps = 1001, .is_within_epoch = true})
                .find("steps   1001 of 64 samples, the last within epoch 3\n"),
            std::string::npos);
  record.strategy = "zero1";
  record.why_strategy = "ddp needs 31 GB of 27 GB on node gpu-03";
  EXPECT_NE(start_text(record, {}).find("\nstrategy zero1: ddp needs 31 GB of 27 GB on node gpu-03\n"),
            std::string::npos);
  record.why_strategy = "";
  record.folder = "a\033[31m\nb";
  EXPECT_NE(start_text(record, {}).find("a\\x1b[31m\\x0ab"), std::string::npos) << start_text(record, {});
  record.folder = "runs/mnist_cnn-1";
  record.n_evaluation = 0;
  record.promise = "";
  record.shape = "";
  record.n_ranks = record.n_nodes = 1;
  record.memory = {2'000'000'000};
  record.is_device_memory = true;
  EXPECT_EQ(
      start_text(record, {}),
      "model   mnist_cnn: 1199882 parameters, bf16\ndata    digits: 60000 samples, not evaluated\nranks   1 rank\n"
      "memory  2 GB of GPU memory per rank for activations, parameters, gradients and the optimizer\nrun     "
      "runs/mnist_cnn-1");
}

TEST(RunText, AnEpochIsOneLine) {
  EpochRecord record{.at = {.epoch = 3}, .n_samples = 2048, .loss = 0.04119, .top1_percent = 98.7, .time = {0.16}};
  record.samples_per_s = 12'800;
  EXPECT_EQ(epoch_text(record, example_goal),
            "epoch 3/50  training: loss 0.04119, top-1 98.70 % of 2048 samples in 160 ms (12800 samples/s)");
  record.top1_percent.reset();
  record.time = {};
  EXPECT_EQ(epoch_text(record, example_goal), "epoch 3/50  training: loss 0.04119 of 2048 samples in 0 s");
  EXPECT_EQ(first_step_text({1.234}, {.n_steps = 100}), "first step took 1.23 s; 100 steps in all");
}

TEST(RunText, RatingsHaveARootOfTheirError) {
  TrainRecord record = example_train();
  record.rmse = 0.3536;
  const std::string text = progress_text(record, example_goal);
  EXPECT_NE(text.find("  loss 0.125, rmse 0.3536  lr"), std::string::npos) << text;
  EvaluationRecord evaluation{.at = example_position(), .n_samples = 100, .loss = 0.81, .rmse = 0.9, .time = {2}};
  EXPECT_EQ(evaluation_text(evaluation, {}), "evaluation: loss 0.81, rmse 0.9 of 100 samples in 2.00 s");
  FinalRecord final_record = example_final();
  final_record.rmse = 0.2886;
  EXPECT_NE(final_text(final_record).find("\ntraining    loss 0.0833, rmse 0.2886\n"), std::string::npos);
}

TEST(RunText, MemoryAndTrafficAreBesideTheirForecast) {
  FinalRecord record = example_final();
  EXPECT_NE(
      final_text(record).find("\nmemory      peak 1.23 GB (forecast 1.25 GB), states 51 MB (forecast 51 MB)\n"
                              "sent        409 MB in 128.5 messages (forecast 409 MB in 128 messages) per step\n"),
      std::string::npos)
      << final_text(record);
  record.measured->sent_bytes = record.forecast->sent_bytes = 0;
  EXPECT_EQ(final_text(record).find("\nsent "), std::string::npos) << "ranks of one node send nothing";
  record.measured = UseRecord{.communication = core::Seconds{0.012}};
  EXPECT_EQ(final_text(record).find("\nmemory "), std::string::npos) << "unknown";
}

TEST(RunText, TellsHours) {
  EXPECT_EQ(clock_text({0}), "0:00:00");
  EXPECT_EQ(clock_text({59.6}), "0:01:00");
  EXPECT_EQ(clock_text({3 * 3600 + 25 * 60 + 45}), "3:25:45");
  EXPECT_EQ(clock_text({1e6}), "277:46:40");
  EXPECT_EQ(clock_text({std::numeric_limits<double>::infinity()}), "-");
}

TEST(RunText, EvaluationNamesWhatItIsOver) {
  EXPECT_EQ(evaluation_text(example_evaluation(), example_goal),
            "epoch 3/50  evaluation: loss 0.0312, top-1 99.02 %, top-5 100.00 % of 10000 samples in 1.23 s");
  EvaluationRecord record = example_evaluation();
  record.top1_percent.reset();
  record.top5_percent.reset();
  EXPECT_EQ(evaluation_text(record, example_goal), "epoch 3/50  evaluation: loss 0.0312 of 10000 samples in 1.23 s");
  EXPECT_EQ(evaluation_text(record, {}), "evaluation: loss 0.0312 of 10000 samples in 1.23 s");
}

TEST(RunText, TheReportSaysWhatItMeasured) {
  const std::string text = final_text(example_final());
  EXPECT_TRUE(text.starts_with(
      "finished after 50 epochs, 1600 steps, 102400 samples in 9.87 s on 2 ranks of 2 nodes\ntraining    loss 0.0833\n"
      "evaluation  loss 0.0312, top-1 99.02 %, top-5 100.00 % of 10000 samples\n"
      "throughput  12800 samples/s over 200 steps after 5 of warm-up, without evaluation and saving\n"
      "step        4.05 ms p50 [4.0"))
      << text;
  EXPECT_NE(text.find("\ndata_wait          0.0200      0.0400      0.0600     8.0  rank 1 (node2)\n"),
            std::string::npos)
      << text;
  for (const metrics::Phase phase : metrics::all_phases)
    EXPECT_NE(text.find(fmt::format("\n{} ", metrics::name(phase))), std::string::npos) << text;
  FinalRecord of_hosts = example_final();
  of_hosts.phases.rows[static_cast<std::size_t>(metrics::Phase::device)] = {.phase = metrics::Phase::device};
  EXPECT_EQ(final_text(of_hosts).find("\ndevice "), std::string::npos);
}

TEST(RunText, TheReportTellsWhatWasRead) {
  FinalRecord record = example_final();
  std::string text = final_text(record);
  EXPECT_NE(
      text.find(
          "\ndata        987 MB read (100 MB/s) in 321 chunks, 0 check sum failures, kept in memory, mixing 0.75\n"),
      std::string::npos)
      << text;
  record.data->is_cached = false;
  record.data->mixing.reset();
  text = final_text(record);
  EXPECT_NE(text.find("\ndata        987 MB read (100 MB/s) in 321 chunks, 0 check sum failures\n"), std::string::npos)
      << text;
  record.data.reset();
  EXPECT_EQ(final_text(record).find("\ndata  "), std::string::npos);
}

TEST(RunText, TheReportOfAStoppedRunSaysWhy) {
  FinalRecord record{.at = {.epoch = 1, .step = 1, .samples_seen = 64, .elapsed = {0.5}},
                     .is_within_epoch = true,
                     .state = RunStatus::stopped,
                     .message = "SIGTERM",
                     .n_warmup_steps = 5};
  const std::string text = final_text(record);
  EXPECT_TRUE(text.starts_with("stopped within epoch 1 after 1 step, 64 samples in 500 ms on 1 rank: SIGTERM\n"))
      << text;
  EXPECT_NE(text.find("no throughput: all steps are warm-up (the first 5)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("evaluation"), std::string::npos) << text;
}

TEST(ProgressDisplay, IsALineEachWhereThereIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    ProgressDisplay display;
    display.update("a");
    display.update(std::string(200, 'b'));
    display.print("c");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a\n" + std::string(200, 'b') + "\nc\n");
}

/// Replaces stderr by a terminal of 20 columns, during a block.
class Terminal {
 public:
  Terminal() : before_{dup(STDERR_FILENO)} {
    const winsize size{.ws_row = 24, .ws_col = 20, .ws_xpixel = 0, .ws_ypixel = 0};
    int terminal = -1;
    if (openpty(&reader_, &terminal, nullptr, nullptr, &size) != 0) std::abort();
    dup2(terminal, STDERR_FILENO);
    close(terminal);
  }
  ~Terminal() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(reader_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Returns what was written since the last call. It comes in the pieces in which it was written, some of them a
  /// little later.
  [[nodiscard]] std::string read() const {
    constexpr int wait_ms = 100;
    std::string text;
    char piece[1000];
    for (pollfd ready{reader_, POLLIN, 0}; poll(&ready, 1, wait_ms) > 0;) {
      const ssize_t n = ::read(reader_, piece, sizeof piece);
      if (n <= 0) break;
      text.append(piece, static_cast<std::size_t>(n));
    }
    return text;
  }

 private:
  int before_;
  int reader_ = -1;
};

TEST(ProgressDisplay, ReplacesItsLineOnATerminal) {
  const Terminal terminal;
  ProgressDisplay display;
  display.update("0123456789012345678901234567890");
  EXPECT_EQ(terminal.read(), "0123456789012345678") << "a line that wraps could not be replaced";
  display.update("b");
  EXPECT_EQ(terminal.read(), "\r\x1b[Kb");
  display.print("c");
  EXPECT_EQ(terminal.read(), "\r\x1b[Kc\r\n");
}

}  // namespace
}  // namespace lockstep::training
