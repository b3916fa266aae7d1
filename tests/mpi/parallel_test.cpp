// The synchronizer over MPI's shared windows and messages, on one node and on simulated ones: exact, and guarded.
#include <gtest/gtest.h>

#include "comm/transport_mpi.hpp"
#include "parallel/control_word.hpp"
#include "parallel/synchronizer.hpp"
#include "support/mpi_main.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep {
namespace {

using parallel::ControlWord;
using parallel::Synchronizer;
using parallel::SynchronizerOptions;

SynchronizerOptions make_options(bool is_deterministic) {
  SynchronizerOptions options{.is_deterministic = is_deterministic, .guard_interval = 1};
  options.buckets = {{support::small_bucket_bytes}, {1'024}, {1'024}};
  options.optimizer.momentum = 0.5;
  return options;
}

class OnNodes : public testing::TestWithParam<int> {
 protected:
  OnNodes()
      : world_{comm::make_mpi_transport(support::world(), {.ranks_per_node = GetParam(), .oversubscribed = true})} {}

  /// Four steps, each compared with what they must give; integers, and halves of them, are exact.
  void train(bool is_deterministic) const {
    const auto slots = support::odd_slots();
    Synchronizer synchronizer{*world_, slots, make_options(is_deterministic)};
    ControlWord word{*world_, is_deterministic};
    if (world_->rank() == 0)
      support::fill(slots, synchronizer.parameters(), [](std::size_t i) { return support::small_integer(i, 0, 77); });
    synchronizer.publish_initial();
    std::vector<float> expected(synchronizer.parameters().begin(), synchronizer.parameters().end());
    std::vector<float> momentum(expected.size());
    for (int step = 0; step < 4; ++step) {
      support::fill(slots, synchronizer.gradients(),
                    [&](std::size_t i) { return support::small_integer(i, world_->rank(), step); });
      for (std::size_t slot = 0; slot < slots.size(); ++slot) synchronizer.ready(slot);
      synchronizer.step(0.25, 1);
      support::fill(slots, momentum, [&](std::size_t i) {
        float sum = momentum[i] / 2;
        for (int rank = 0; rank < world_->n_ranks(); ++rank) sum += support::small_integer(i, rank, step);
        return sum;
      });
      support::fill(slots, expected, [&](std::size_t i) { return expected[i] - momentum[i] / 4; });
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), synchronizer.parameters().begin())) << "step " << step;
      const auto agreement = word.exchange({.loss = 1, .replica = synchronizer.replica_hash()});
      ASSERT_EQ(agreement.has_value(), step > 0);
      EXPECT_TRUE(!agreement || agreement->replicas_agree);
    }
    EXPECT_EQ(word.finish()->loss, world_->n_ranks());
  }

  std::unique_ptr<comm::Transport> world_;
};

TEST_P(OnNodes, StepsAreExact) {
  for (const bool is_deterministic : {false, true}) train(is_deterministic);
}

// 0: the machine as it is.
INSTANTIATE_TEST_SUITE_P(RanksPerNode, OnNodes, testing::Values(0, 1, 2), testing::PrintToStringParamName{});

}  // namespace
}  // namespace lockstep
