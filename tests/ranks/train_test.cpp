// lockstep train on several ranks: losses, weights and learning rates equal those of one rank, for each kind of
// network.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/lockstep_program.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::training {
namespace {

using support::expect_done;
using support::lockstep_on;
using Json = nlohmann::json;

class OnRanks : public support::InFolder {
 protected:
  /// The last line of the log.
  Json trained(const std::string& words, int n_ranks = 1) {
    const std::string run = "r" + std::to_string(n_runs_++);
    digest_ = expect_done(lockstep_on, "train " + words + " --run-dir " + run, n_ranks).line("digest");
    std::istringstream log{io::get(run + "/log.jsonl")};
    Json last;
    for (std::string line; std::getline(log, line);) {
      last = Json::parse(line);
      if (last.value("samples_seen", 0) == 320 && last["kind"] == "train") rate_ = last["learning_rate"];
    }
    return last;
  }
  double loss(const std::string& words, int n_ranks = 1) { return trained(words, n_ranks)["loss"]; }
  std::string digest(const std::string& words, int n_ranks = 1) {
    static_cast<void>(trained(words + " --deterministic --digest", n_ranks));
    return digest_;
  }
  double rate(const std::string& words, int n_ranks = 1) {
    static_cast<void>(trained(words, n_ranks));
    return rate_;
  }

 private:
  int n_runs_ = 0;
  std::string digest_{};
  double rate_ = 0;  ///< after 320 samples
};

TEST_F(OnRanks, TheLossIsThatOfOne) {
  const std::string toy = "toy 4 --synthetic-samples 512";
  const double first = loss("toy 1 --synthetic-samples 512"), one = loss(toy);
  EXPECT_LT(one, first);
  for (const int n : {2, 3, 4}) EXPECT_NEAR(loss(toy, n), one, 1e-4 * one) << n;
  EXPECT_LT(loss("toy 1 --synthetic-samples 512 --init-from r1/weights.h5"), one) << "weights were not loaded";
}

// Each rank takes its part of each tensor.
TEST_F(OnRanks, WeightsOfAFileAreThoseOfOne) {
  const std::string words = "digits --synthetic-samples 64 --max-steps 1", from = words + " --init-from r0/weights.h5";
  static_cast<void>(trained(words + " --seed 7"));
  const std::string one = digest(from);
  EXPECT_NE(one, digest(words)) << "weights were not loaded";
  for (const int n : {2, 4}) EXPECT_EQ(digest(from, n), one) << n;
}

// The digest covers the running statistics of batch normalization; another seed has another digest.
TEST_F(OnRanks, BitsAreThoseOfOne) {
  for (const std::string words :
       {"resnet50_synthetic --model resnet18 --cifar-stem --classes 10 --image-size 16 --batch 16 --bn-group 4 "
        "--synthetic-steps 2 --augment crop:16:4,flip,normalize:0.5:0.25",
        "digits --synthetic-samples 320 --max-steps 4 --accumulate 2"}) {
    const std::string one = digest(words);
    EXPECT_NE(one, "");
    for (const int n : {2, 4}) EXPECT_EQ(digest(words, n), one) << n << ": " << words;
    EXPECT_NE(digest(words + " --seed 2", 2), one);
  }
}

TEST_F(OnRanks, TheLearningRateFollowsTheSamples) {
  const std::string toy = "toy 3 --schedule cosine --warmup 0.1 --max-steps 10";
  const double one = rate(toy);
  EXPECT_GT(one, 0);
  for (const int n : {2, 3, 4}) EXPECT_EQ(rate(toy, n), one) << n;
}

// The tenth step begins after 288 samples, when the rate has been halved four times.
TEST_F(OnRanks, TheLearningRateOfAStepIsThatOfTheSamplesBeforeIt) {
  EXPECT_DOUBLE_EQ(rate("toy 3 --lr 0.001 --schedule step --step-size '64 samples' --gamma 0.5 --max-steps 10"),
                   0.001 / 16);
}

// A step touches few rows of an embedding; with lanes, every row is summed.
TEST_F(OnRanks, EmbeddingsAreThoseOfOneInPartsToo) {
  const std::string ratings = "movielens --synthetic --batch 48 --max-steps 30 --val-split ''";
  const double dense = loss(ratings + " --deterministic --lanes 4");
  for (const int n : {1, 2, 3}) {
    const std::string parts = " --accumulate " + std::to_string(n % 2 + 1);
    EXPECT_NEAR(loss(ratings + parts, n), dense, 1e-4 * dense) << n;
  }
}

/// Losses of training, and of evaluation by running statistics.
struct Losses {
  double training = 0;
  double evaluation = 0;
};

// Also with groups of several ranks, and if the last batch leaves some without samples. Rounding alone grows to 2e-5 in
// these steps; other groups differ by 3e-3.
TEST_F(OnRanks, GroupsOfBatchNormalizationAreThoseOfOne) {
  const auto losses = [this](const std::string& words, int n) {
    const Json last = trained(
        "resnet50_synthetic --model resnet18 --cifar-stem --classes 10 --image-size 16 --batch 16 --epochs 1 "
        "--val-split val --lr 0.001 " +
            words,
        n);
    return Losses{last["loss"], last["evaluation"]["loss"]};
  };
  const auto are_near = [](const Losses& a, const Losses& b) {
    const auto is_near = [](double x, double y) { return x > 0 && std::abs(x - y) < 1e-4 * y; };
    return is_near(a.training, b.training) && is_near(a.evaluation, b.evaluation);
  };
  struct Case {
    std::string words;
    std::vector<int> rank_counts;
    std::string more{};
  };
  for (const Case& c :
       {Case{"--bn-group 16 --synthetic-samples 35", {3, 4}}, Case{"--bn-group 8 --synthetic-samples 40", {4}},
        Case{"--bn-group 4 --synthetic-samples 24", {2, 4}},
        Case{"--bn-group 4 --synthetic-samples 24", {2}, " --accumulate 2"}}) {
    const Losses one = losses(c.words, 1);
    for (const int n : c.rank_counts) EXPECT_TRUE(are_near(losses(c.words + c.more, n), one)) << n << ": " << c.words;
  }
  EXPECT_FALSE(
      are_near(losses("--bn-group 16 --synthetic-samples 40", 1), losses("--bn-group 8 --synthetic-samples 40", 1)))
      << "the loss does not depend on the groups";
}

}  // namespace
}  // namespace lockstep::training
