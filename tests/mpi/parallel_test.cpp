// The synchronizer over MPI's shared windows and messages, on one node and on simulated ones: exact, and guarded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "comm/transport.hpp"
#include "core/error.hpp"
#include "parallel/control_word.hpp"
#include "parallel/host_synchronizer.hpp"
#include "support/mpi_main.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep {
namespace {

using parallel::ControlWord;
using parallel::HostSynchronizer;
using parallel::SynchronizerOptions;

SynchronizerOptions make_options(bool is_deterministic) {
  SynchronizerOptions options{.is_deterministic = is_deterministic, .guard_interval = 1};
  options.buckets = {{support::small_bucket_bytes}, {1'024}, {1'024}};
  options.optimizer.momentum = 0.5;
  return options;
}

class OnNodes : public testing::TestWithParam<int> {
 protected:
  OnNodes() : world_{comm::make_transport(support::world(), {.ranks_per_node = GetParam(), .oversubscribed = true})} {}

  using Gradient = std::function<float(std::size_t element, int rank, int step)>;

  /// Four steps, each compared with its expected result; integers, and halves of them, are exact. `touch` marks rows.
  void train(const std::vector<parallel::Slot>& slots, bool is_deterministic, const Gradient& gradient,
             const std::function<void(HostSynchronizer&, int step)>& touch) const {
    HostSynchronizer synchronizer{*world_, slots, make_options(is_deterministic)};
    ControlWord word{*world_, is_deterministic};
    if (world_->rank() == 0)
      support::fill(slots, synchronizer.parameters(), [](std::size_t i) { return support::small_integer(i, 0, 77); });
    synchronizer.start({});
    std::vector<float> expected(synchronizer.parameters().begin(), synchronizer.parameters().end());
    std::vector<float> momentum(expected.size());
    for (int step = 0; step < 4; ++step) {
      support::fill(slots, synchronizer.gradients(), [&](std::size_t i) { return gradient(i, world_->rank(), step); });
      touch(synchronizer, step);
      for (std::size_t slot = 0; slot < slots.size(); ++slot) synchronizer.ready(slot);
      synchronizer.step({.learning_rate = 0.25});
      support::fill(slots, momentum, [&](std::size_t i) {
        float sum = momentum[i] / 2;
        for (int rank = 0; rank < world_->n_ranks(); ++rank) sum += gradient(i, rank, step);
        return sum;
      });
      support::fill(slots, expected, [&](std::size_t i) { return expected[i] - momentum[i] / 4; });
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), synchronizer.parameters().begin())) << "step " << step;
      const auto agreement = word.exchange({.loss = 1, .replica = synchronizer.guard().replica_hash()});
      ASSERT_EQ(agreement.has_value(), step > 0);
      EXPECT_TRUE(!agreement || agreement->replicas_agree);
    }
    EXPECT_EQ(word.finish()->loss, world_->n_ranks());
  }

  std::unique_ptr<comm::Transport> world_;
};

TEST_P(OnNodes, StepsAreExact) {
  for (const bool is_deterministic : {false, true})
    train(support::odd_slots(), is_deterministic, support::small_integer, [](HostSynchronizer&, int) {});
}

// Few rows, all rows, other rows, no rows: nodes exchange rows in some of these.
TEST_P(OnNodes, RowsOfEmbeddings) {
  constexpr std::size_t table = 1, n_rows = 900, width = 37;
  auto slots = support::make_slots({33, n_rows * width, 10});
  slots[table].row_elements = width;
  const auto is_touched = [](std::size_t row, int rank, int step) {
    return step == 1 || (step < 3 && (row + static_cast<std::size_t>(rank * 3 + step)) % 100 < 3);
  };
  const auto gradient = [&](std::size_t i, int rank, int step) {
    const bool is_in_table = slots[table].slice.offset <= i && i < slots[table].slice.offset + n_rows * width;
    const bool is_zero = is_in_table && !is_touched((i - slots[table].slice.offset) / width, rank, step);
    return is_zero ? 0.0F : support::small_integer(i, rank, step);
  };
  train(slots, false, gradient, [&](HostSynchronizer& synchronizer, int step) {
    for (std::uint64_t row = 0; row < n_rows; ++row)
      if (is_touched(row, world_->rank(), step)) synchronizer.touch(table, std::span{&row, 1});
  });
}

// With a rate of 0 the value stays until the guard looks, after the second step.
TEST_P(OnNodes, AValueChangedOnOneNodeIsNamedOnAllRanks) {
  const int last_node = world_->nodes().back();
  if (last_node == 0) GTEST_SKIP() << "one node";
  const auto slots = support::make_slots({100, 5'000});
  HostSynchronizer synchronizer{*world_, slots, {.guard_interval = 2}};
  ControlWord word{*world_, false};
  synchronizer.start({});
  synchronizer.step({.learning_rate = 0});
  float& element = synchronizer.parameters()[slots[1].slice.offset + 4'000];
  if (world_->rank() == world_->n_ranks() - 1) element = 1;
  synchronizer.step({.learning_rate = 0});
  static_cast<void>(word.exchange({.replica = synchronizer.guard().replica_hash()}));
  EXPECT_FALSE(word.finish()->replicas_agree);
  const auto error = core::complaint_of([&] { synchronizer.guard().fail_for_replicas(); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), core::ExitCode::failed);
  EXPECT_NE(error->problem().what.find("'t1'"), std::string::npos) << error->what();
  EXPECT_TRUE(error->problem().where.ends_with(fmt::format("on node {}", last_node))) << error->what();
  support::world().barrier();  // no rank frees what others still read
}

// 0: the machine as it is.
INSTANTIATE_TEST_SUITE_P(RanksPerNode, OnNodes, testing::Values(0, 1, 2), testing::PrintToStringParamName{});

}  // namespace
}  // namespace lockstep
