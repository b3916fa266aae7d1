#include "parallel/lanes.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "comm/transport_threads.hpp"
#include "core/error.hpp"
#include "parallel/control_word.hpp"
#include "parallel/host_synchronizer.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

using optim::OptimizerKind;
using support::Nodes;

constexpr int n_lanes = 8;

struct Outcome {
  std::vector<float> parameters;
  double loss = 0;
};

bool same_bits(const Outcome& a, const Outcome& b) {
  return std::memcmp(&a.loss, &b.loss, sizeof(a.loss)) == 0 && a.parameters.size() == b.parameters.size() &&
         std::memcmp(a.parameters.data(), b.parameters.data(), a.parameters.size() * sizeof(float)) == 0;
}

double loss_of(int lane, int step) { return 1.0 / (3 + lane) + 0.1 * step; }

/// Five steps of `n_lanes` lanes on these ranks; the loss is that of the last one.
Outcome train(const Nodes& nodes, OptimizerKind kind, double clip_norm, bool is_deterministic = true) {
  Outcome outcome;
  const auto slots = support::odd_slots();
  SynchronizerOptions options{.optimizer = optim::default_spec(kind)};
  options.buckets = {{support::small_bucket_bytes}, {1'024}, {1'024}};
  options.is_deterministic = is_deterministic;
  comm::run_as_threads(nodes, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, slots, options};
    ControlWord word{world, is_deterministic};
    Lanes lanes{n_lanes, world.rank(), world.n_ranks(), synchronizer.gradients()};
    if (world.rank() == 0)
      support::fill(slots, synchronizer.parameters(), [](std::size_t i) { return support::odd_value(i, 0, 0); });
    synchronizer.start({});
    for (int step = 0; step < 5; ++step) {
      std::vector<double> losses;
      for (int local = 0; local < lanes.n_local(); ++local) {
        const int lane = lanes.first() + local;
        support::fill(slots, synchronizer.gradients(),
                      [&](std::size_t i) { return support::odd_value(i, lane, step); });
        losses.push_back(loss_of(lane, step));
        lanes.lane_done(local);
      }
      synchronizer.step({.learning_rate = 1e-2, .scale = 4}, clip_norm);
      static_cast<void>(word.exchange({.loss = sum_lanes(losses)}));
    }
    const auto agreement = word.finish();
    if (world.rank() == world.n_ranks() - 1)
      outcome = {{synchronizer.parameters().begin(), synchronizer.parameters().end()}, agreement->loss};
  });
  return outcome;
}

const std::vector<Nodes>& placements_that_divide() {
  static const std::vector<Nodes> all{{0, 0},
                                      {0, 1},
                                      {0, 0, 0, 0},
                                      {0, 0, 1, 1},
                                      {0, 1, 0, 1},
                                      {0, 0, 0, 1},
                                      {0, 1, 2, 2},
                                      {0, 1, 2, 3},
                                      {0, 0, 0, 0, 0, 0, 0, 0},
                                      {0, 0, 0, 0, 1, 1, 1, 1},
                                      {0, 0, 1, 1, 2, 2, 3, 3},
                                      {0, 1, 2, 0, 1, 2, 0, 1}};
  return all;
}

void expect_same_bits_everywhere(OptimizerKind kind, double clip_norm) {
  const Outcome alone = train({0}, kind, clip_norm);
  for (const Nodes& nodes : placements_that_divide())
    EXPECT_TRUE(same_bits(train(nodes, kind, clip_norm), alone)) << support::describe(nodes) << optim::name(kind);
}

TEST(Lanes, BitsDoNotDependOnTheRanks) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam}) expect_same_bits_everywhere(kind, 0);
}

TEST(Lanes, NorWithNormsOfTensorsAndOfAll) {
  for (const OptimizerKind kind : {OptimizerKind::lars, OptimizerKind::lamb}) expect_same_bits_everywhere(kind, 0);
  expect_same_bits_everywhere(OptimizerKind::sgd, 0.5);
  expect_same_bits_everywhere(OptimizerKind::lamb, 0.5);
}

TEST(Lanes, SumsInRankOrderWouldDiffer) {
  const Nodes eight(8);
  EXPECT_FALSE(same_bits(train(eight, OptimizerKind::sgd, 0, false), train({0}, OptimizerKind::sgd, 0)));
}

TEST(Lanes, IntegersAddUpExactly) {
  for (const int n_ranks : {1, 2, 4, 8}) {
    std::vector<float> sum(37);
    Lanes lanes{n_lanes, n_ranks - 1, n_ranks, sum};
    EXPECT_EQ(lanes.n_local(), n_lanes / n_ranks);
    EXPECT_EQ(lanes.first() + lanes.n_local(), n_lanes);
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (int local = 0; local < lanes.n_local(); ++local) {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = support::small_integer(i, lanes.first() + local, repeat);
        lanes.lane_done(local);
      }
      for (std::size_t i = 0; i < sum.size(); ++i) {
        float expected = 0;
        for (int lane = lanes.first(); lane < n_lanes; ++lane) expected += support::small_integer(i, lane, repeat);
        EXPECT_EQ(sum[i], expected);
      }
    }
  }
}

TEST(Lanes, LossesAreSummedByTheSameTree) {
  const std::vector<double> losses{1e16, 1, -1e16, 1, 0.1, 0.2, 0.3, 0.4};
  EXPECT_EQ(sum_lanes(losses), ((1e16 + 1) + (-1e16 + 1)) + ((0.1 + 0.2) + (0.3 + 0.4)));
  EXPECT_EQ(sum_lanes(std::vector<double>{5}), 5);
}

TEST(Lanes, SamplesAreContiguousAndAll) {
  std::size_t at = 0;
  for (int lane = 0; lane < n_lanes; ++lane) {
    const core::Slice samples = lane_samples(61, n_lanes, lane);
    EXPECT_EQ(samples.offset, at);
    at += samples.count;
  }
  EXPECT_EQ(at, 61U);
}

TEST(Lanes, RanksMustDivideAPowerOfTwo) {
  for (const int n_ranks : {1, 2, 4, 8}) EXPECT_NO_THROW(require_lanes(8, n_ranks));
  for (const auto& [lanes, ranks] : {std::pair{8, 3}, {8, 16}, {6, 2}, {0, 1}, {-8, 1}}) {
    const auto error = core::complaint_of([lanes = lanes, ranks = ranks] { require_lanes(lanes, ranks); });
    ASSERT_TRUE(error) << lanes << " " << ranks;
    EXPECT_EQ(error->code(), core::ExitCode::usage);
  }
  const auto fix_of = [](int lanes) { return core::complaint_of([lanes] { require_lanes(lanes, 3); })->problem().fix; };
  EXPECT_EQ(fix_of(8), "use 1, 2, 4 or 8 ranks");
  EXPECT_EQ(fix_of(2), "use 1 or 2 ranks");
  EXPECT_EQ(fix_of(1), "use 1 rank");
}

}  // namespace
}  // namespace lockstep::parallel
