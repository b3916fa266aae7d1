#include "training/train/running_statistics.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "comm/transport.hpp"
#include "support/ranks.hpp"

namespace lockstep::training {
namespace {

constexpr std::size_t n_lanes = 4;

/// An executor that only has running statistics.
class OnlyStatistics final : public nn::Executor {
 public:
  explicit OnlyStatistics(const nn::Network& network) {
    for (const nn::Statistic& statistic : network.statistics()) values_.emplace_back(statistic.n_channels);
  }

  [[nodiscard]] std::span<float> statistic(int statistic) override {
    return values_.at(static_cast<std::size_t>(statistic));
  }
  [[nodiscard]] std::vector<float> all() const {
    std::vector<float> all;
    for (const auto& values : values_) all.insert(all.end(), values.begin(), values.end());
    return all;
  }
  /// Sets channels to begin, begin + 1, ...
  void set(float begin) {
    for (auto& values : values_)
      for (float& value : values) value = begin++;
  }

  [[nodiscard]] std::span<const nn::ArenaSlot> slots() const noexcept override { return {}; }
  [[nodiscard]] std::size_t arena_elements() const noexcept override { return 0; }
  [[nodiscard]] std::vector<core::Slice> unit_reads() const override { return {}; }
  void pack(int, core::Slice, std::span<const float>, std::span<float>) const override {}
  void unpack(int, core::Slice, std::span<const float>, std::span<float>) const override {}
  void bind(std::span<const nn::SlotPlace>) override {}
  void enqueue(const data::Batch&, nn::Pass, const core::StepNumbers&, nn::Hooks&, runtime::Stream&) override {}
  [[nodiscard]] nn::LossSums sums() override { return {}; }
  [[nodiscard]] nn::LayerTimes& layer_times() noexcept override { std::abort(); }
  [[nodiscard]] std::vector<std::string> slow_layers() const override { return {}; }
  [[nodiscard]] bool computes_in_floats() const override { return false; }
  [[nodiscard]] std::size_t n_bytes() const noexcept override { return 0; }

 private:
  std::vector<std::vector<float>> values_{};
};

/// Two normalizations of different width: 10 channels of means and variances.
nn::Network two_normalizations() {
  nn::Network network;
  const nn::Value x = network.batch_norm("bn1", network.input({2, 4, 4}));
  network.batch_norm("bn2", network.conv("conv", x, {.n_out = 3, .kernel = 1}));
  return network;
}

/// begin, begin + 1, ... of each of the 10 channels.
std::vector<float> counted(double begin) {
  std::vector<float> values(10);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(begin + static_cast<double>(i));
  return values;
}

Recipe statistics_recipe(bool is_deterministic) {
  Recipe recipe;
  recipe.deterministic = is_deterministic;
  recipe.lanes = n_lanes;
  return recipe;
}

/// What the tests of one rank use.
struct OnRank {
  explicit OnRank(bool is_deterministic) : recipe{statistics_recipe(is_deterministic)} {}
  ~OnRank() { world.barrier(); }  // no rank frees what others still read
  OnRank(const OnRank&) = delete;
  OnRank& operator=(const OnRank&) = delete;

  const runtime::Communicator& world = support::world();
  double n_ranks = world.n_ranks();
  float rank = static_cast<float>(world.rank());
  Recipe recipe;
  nn::Network network = two_normalizations();
  OnlyStatistics executor{network};
  metrics::PhaseTimers timers{};
  std::unique_ptr<comm::Transport> transport = comm::make_transport(world, {.oversubscribed = true});
  RunningStatistics statistics{world, *transport, recipe, network, executor, timers};
};

RANKS_TEST(RunningStatistics, MeanHasTheWeightsOfRanks) {
  OnRank on{false};
  on.statistics.start();
  on.executor.set(100 * on.rank);
  on.statistics.use_mean();
  EXPECT_EQ(on.executor.all(), counted(100 * (on.n_ranks - 1) / 2));
  on.statistics.use_own();
  EXPECT_EQ(on.executor.all(), counted(100 * on.rank));
  on.statistics.use_mean(on.world.rank() == on.world.n_ranks() - 1 ? 1 : 0);
  EXPECT_EQ(on.executor.all(), counted(100 * (on.n_ranks - 1))) << "only the last rank has samples";
  on.statistics.use_mean();
  EXPECT_EQ(on.executor.all(), counted(100 * (on.n_ranks - 1))) << "all continue from the mean";
}

RANKS_TEST(RunningStatistics, AStepThatIsSkippedChangesNothing) {
  OnRank on{false};
  on.executor.set(100 * on.rank);
  on.statistics.keep();
  on.executor.set(-1);
  on.statistics.restore();
  EXPECT_EQ(on.executor.all(), counted(100 * on.rank));
  on.statistics.keep();
  on.executor.set(7);
  on.statistics.keep();
  on.statistics.restore();
  EXPECT_EQ(on.executor.all(), counted(7)) << "of the last step";
}

RANKS_TEST(RunningStatistics, LanesStaySeparate) {
  if (n_lanes % static_cast<std::size_t>(support::world().n_ranks()) != 0) return;
  OnRank on{true};
  const std::size_t n_local = n_lanes / static_cast<std::size_t>(on.world.n_ranks());
  const std::size_t first = n_local * static_cast<std::size_t>(on.world.rank());
  std::vector<float> own;  // the first channel of each lane
  for (std::size_t local = 0; local < n_local; ++local) own.push_back(100 * static_cast<float>(first + local));
  const auto train = [&](float change) {  // returns what the lanes had before
    std::vector<float> found;
    for (std::size_t local = 0; local < n_local; ++local) {
      on.statistics.begin_lane(local);
      found.push_back(on.executor.all().front());
      on.executor.set(own[local] + change);
      on.statistics.end_lane(local);
    }
    return found;
  };
  on.executor.set(5);
  on.statistics.start();
  EXPECT_EQ(train(0), std::vector<float>(n_local, 5));
  on.statistics.keep();
  EXPECT_EQ(train(1), own);
  on.statistics.restore();
  EXPECT_EQ(train(0), own) << "the step before was skipped";
  on.statistics.use_mean();
  EXPECT_EQ(on.executor.all(), counted(150)) << "of lanes 0 to 3";
  const auto saved = on.statistics.gather();
  ASSERT_EQ(saved.size(), on.world.rank() == 0 ? 4u : 0u);
  for (const RunningStatistics::Saved& one : saved) EXPECT_EQ(one.values.size(), one.box.n_elements());
  if (saved.empty()) return;
  EXPECT_EQ(saved[0].box, checkpoint::whole("statistic/bn1.running_mean", {n_lanes, 2}));
  EXPECT_EQ(saved[0].values, (std::vector<float>{0, 1, 100, 101, 200, 201, 300, 301}));
  EXPECT_EQ(saved[3].box, checkpoint::whole("statistic/bn2.running_var", {n_lanes, 3}));
  EXPECT_EQ(saved[3].values, (std::vector<float>{7, 8, 9, 107, 108, 109, 207, 208, 209, 307, 308, 309}));
}

RANKS_TEST(RunningStatistics, WithoutLanesACheckpointHasTheMean) {
  OnRank on{false};
  on.executor.set(100 * on.rank);
  const auto saved = on.statistics.gather();
  ASSERT_EQ(saved.size(), on.world.rank() == 0 ? 4u : 0u);
  if (saved.empty()) return;
  const auto mean = static_cast<float>(100 * (on.n_ranks - 1) / 2);
  EXPECT_EQ(saved[1].box, checkpoint::whole("statistic/bn1.running_var", {1, 2}));
  EXPECT_EQ(saved[1].values, (std::vector<float>{mean + 2, mean + 3}));
}

}  // namespace
}  // namespace lockstep::training
