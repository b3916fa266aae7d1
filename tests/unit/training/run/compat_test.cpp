#include "training/run/compat.hpp"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::training {
namespace {

/// Two nodes with two ranks each.
CompatRun four_ranks() {
  return {.hosts = {"n1", "n1", "n2", "n2"},
          .local_ranks = {0, 1, 0, 1},
          .batches = {64, 64, 64, 64},
          .data = "/data",
          .n_train = 60000,
          .n_evaluation = 10000,
          .n_epochs = 3,
          .n_steps = 235};
}

CompatRun one_rank(std::uint64_t batch, std::uint64_t n_steps) {
  return {.hosts = {"n1"},
          .local_ranks = {0},
          .batches = {batch},
          .n_evaluation = 10000,
          .n_epochs = 10,
          .n_steps = n_steps};
}

const CompatStyle& style(std::string_view recipe) { return *find_compat_style(recipe); }

TEST(Compat, ToyPrintsTheSeriesLines) {
  EXPECT_EQ(style("toy").on_epoch_begin(one_rank(32, 64), 0), "[GPU0] Epoch 0 | Batchsize: 32 | Steps: 64\n");
  CompatRun two = one_rank(32, 32);
  two.hosts = {"n1", "n1"};
  two.batches = {32, 32};
  EXPECT_EQ(style("toy").on_epoch_begin(two, 49),
            "[GPU0] Epoch 49 | Batchsize: 32 | Steps: 32\n[GPU1] Epoch 49 | Batchsize: 32 | Steps: 32\n");
  EXPECT_EQ(style("toy").on_saved(10, "checkpoint.pt"), "Epoch 10 | Training checkpoint saved at checkpoint.pt\n");
}

TEST(Compat, DeltaGreetsFromEveryRank) {
  const std::string text = style("mnist_cnn").on_start(four_ranks());
  EXPECT_TRUE(text.starts_with("Hello from rank 0 of 4 on n1 where there are 2 allocated GPUs per node.\n")) << text;
  EXPECT_NE(text.find("\nHello from rank 3 of 4 on n2 where there are 2 allocated GPUs per node.\n"
                      "Group initialized? True\nhost: n1, rank: 0, local_rank: 0\n"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("host: n2, rank: 3, local_rank: 1\n")) << text;
}

TEST(Compat, DeltaCountsTheSamplesOfAllRanks) {
  EXPECT_EQ(style("mnist_cnn").step_interval, 10u);
  EXPECT_EQ(style("mnist_cnn").on_step(four_ranks(), 0, 0, 2.3025851),
            "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.302585\n");
  EXPECT_EQ(style("digits").on_step(four_ranks(), 1, 230, 0.05),
            "Train Epoch: 2 [58880/60000 (98%)]\tLoss: 0.050000\n");
}

TEST(Compat, DeltaTestsAfterEachEpoch) {
  const CompatEpoch epoch{.evaluation_loss = 0.02674, .evaluation_top1 = 9913};
  EXPECT_EQ(style("mnist_cnn").on_epoch_end(four_ranks(), epoch),
            "\nTest set: Average loss: 0.0267, Accuracy: 9913/10000 (99%)\n\n");
  EXPECT_EQ(style("mnist_cnn").on_epoch_end(four_ranks(), {}), "") << "this epoch was not evaluated";
}

TEST(Compat, DerechoPrintsTimesFromTheSecondEpochOn) {
  const CompatStyle& ncar = style("resnet50_synthetic");
  CompatRun run = four_ranks();
  run.n_steps = 20;
  EXPECT_TRUE(ncar.on_epoch_begin(run, 2).ends_with("Local Rank: 1, GPU: 3, Epoch: 2, Training ...\n"));
  EXPECT_EQ(ncar.on_epoch_end(run, {.epoch = 0, .time = {5}}), "");
  EXPECT_EQ(ncar.on_epoch_end(run, {.epoch = 1, .time = {5}, .n_steps = 20}),
            "num_steps_per_gpu: 20, avg_step_time: 0.2500\n");
  EXPECT_EQ(ncar.on_epoch_end(run, {.epoch = 1, .time = {5}, .n_steps = 10}),
            "num_steps_per_gpu: 20, avg_step_time: 0.5000\n")
      << "of an epoch that ended early";
  EXPECT_EQ(ncar.on_end(run, {.epoch_times = {{50}, {5}, {5.5}}}), "Average epoch time: 5.25\n");
  EXPECT_EQ(ncar.on_end(run, {.epoch_times = {{50}}}), "") << "there is nothing to average";
}

TEST(Compat, DerechoFramesTheAccuracy) {
  const std::string rule(75, '-');
  EXPECT_EQ(style("resnet50_synthetic").on_epoch_end(one_rank(256, 20), {.epoch = 0, .evaluation_top1 = 1000}),
            rule + "\nEpoch: 0, Accuracy: 0.1\n" + rule + "\n");
}

TEST(Compat, DerechoFsdpAlignsItsColumns) {
  const CompatStyle& fsdp = style("cifar_resnet18");
  const CompatEpoch epoch{.epoch = 0, .loss = 1.53719, .top1_percent = 43.96, .time = {12.34}};
  EXPECT_EQ(fsdp.on_epoch_end(one_rank(64, 782), epoch), "  Epoch   1  loss=1.5372  acc=44.0%  time=12.3s\n");
  EXPECT_EQ(fsdp.on_end(one_rank(64, 782), {.evaluation_top1 = 7654}), "  Test accuracy: 76.5%\n");
}

// The line that ddp/README.md of the workshop shows.
TEST(Compat, IbexPrintsTheWorkshopsLine) {
  CompatRun run = four_ranks();
  const CompatEpoch epoch{.epoch = 2,
                          .learning_rate = 0.001,
                          .loss = 5.1491,
                          .top1_percent = 2.1611,
                          .evaluation_loss = 5.6641,
                          .evaluation_top1 = 98,
                          .samples_per_s = 704.94};
  EXPECT_EQ(style("tinyimagenet_resnet50").on_epoch_end(run, epoch),
            "Epoch [3/3] LR: 0.001000 | Loss (train, val): 5.149, 5.664 | Accuracy (train, val): 2.16%, 0.98% | "
            "Throughput: 704.9 img/s\n");
  const std::string unevaluated = style("tinyimagenet_resnet50").on_epoch_end(run, {.loss = 5});
  EXPECT_NE(unevaluated.find("5.000, nan"), std::string::npos) << unevaluated;
}

TEST(Compat, IbexTellsSizesAndMemory) {
  const CompatStyle& kaust = style("tinyimagenet_resnet50");
  EXPECT_EQ(kaust.on_start(four_ranks()),
            "[Rank 0] Using DATA_DIR=/data\n[Rank 0] Train size (global): 60000\n[Rank 0] Val size   (global): 10000\n"
            "[Rank 0] World size: 4\n[Rank 0] Per-GPU batch size: 64\n[Rank 0] Global batch size: 256\n");
  EXPECT_EQ(kaust.on_end(four_ranks(), {.time = {423.4567}, .peak_bytes = 1048576}),
            "Finished Training\nTotal execution time = 423.457 sec\nMax memory used by tensors = 1048576 bytes\n");
}

TEST(Compat, MovieLensPrintsBothLosses) {
  const CompatStyle& movielens = style("movielens");
  EXPECT_EQ(movielens.on_epoch_begin(one_rank(256, 316), 0), "[GPU0] Epoch 0 | Batchsize: 256 | Steps: 316\n");
  EXPECT_EQ(movielens.on_epoch_end(one_rank(256, 316), {.epoch = 4, .loss = 0.98765, .evaluation_loss = 1.00004}),
            "Epoch 4 | Train Loss: 0.9877 | Val Loss: 1.0000\n");
  EXPECT_EQ(movielens.on_saved(5, "w.h5"), "Epoch 5 | Training checkpoint saved at w.h5\n");
}

TEST(Compat, EveryRecipeHasOneStyle) {
  std::set<std::string_view> recipes;
  for (const CompatStyle& s : compat_styles()) {
    EXPECT_TRUE(recipes.insert(s.recipe).second) << s.recipe;
    EXPECT_FALSE(s.tutorial.empty());
    EXPECT_EQ(s.step_interval > 0, s.on_step != nullptr) << s.recipe;
  }
  EXPECT_EQ(recipes.size(), 7u);
  EXPECT_EQ(find_compat_style("mine"), nullptr);
}

TEST(Compat, WritesFloatsAsPythonDoes) {
  EXPECT_EQ(python_text(1), "1.0");
  EXPECT_EQ(python_text(-3), "-3.0");
  EXPECT_EQ(python_text(0.1), "0.1");
  EXPECT_EQ(python_text(0.9913), "0.9913");
  EXPECT_EQ(python_text(1e-5), "1e-05");
  EXPECT_EQ(python_text(0.0001), "0.0001");
  EXPECT_EQ(python_text(1e16), "1e+16");
  EXPECT_EQ(python_text(12345678.25), "12345678.25");
}

}  // namespace
}  // namespace lockstep::training
