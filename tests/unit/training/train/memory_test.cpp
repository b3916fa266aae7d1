#include "training/train/memory.hpp"

#include <limits>

#include "nn/graph/network.hpp"
#include "unit/training/recipe/fixture.hpp"
#include "unit/training/train/divided.hpp"

namespace lockstep::training {
namespace {

constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
const MemoryNeed need{.activations = 8 * gb,
                      .at_a_time = 32,
                      .batch = 64,
                      .arena = gb / 2,
                      .kept = divided(gb / 2),
                      .states = gb / 2,
                      .parameters = gb / 2,
                      .gradients = gb / 2};

std::string refused_memory(const Recipe& recipe, std::uint64_t n_local, std::uint64_t available,
                           const runtime::LimitsLeft& limits = {any, any}) {
  return refused([&] { compare_memory(recipe, need, n_local, static_cast<int>(n_local), "node7", available, limits); });
}

TEST(Memory, OfANodeIsThatOfItsRanks) {
  const Recipe recipe{.batch = 64, .precision = nn::Precision::f32};
  EXPECT_EQ(need.of_node(2), 18 * gb + gb / 2);
  EXPECT_NO_THROW(compare_memory(recipe, need, 2, 2, "node7", need.of_node(2), {any, any}));
  const std::string message = refused_memory(recipe, 2, 10 * gb + gb / 2);
  EXPECT_TRUE(has(message, "2 ranks on node7 need 18.5 GB, including 16 GB for activations, but it has 10.5 GB"))
      << message;
  EXPECT_TRUE(has(message, "--batch 32 or less, or --accumulate 2 or more")) << message;
  EXPECT_TRUE(has(message, "--precision bf16; fewer ranks per node; --dry-run")) << message;
}

TEST(Memory, SuggestsWhatFallsIntoGroupsAndParts) {
  // There is room for 15 samples of each rank at a time, so one group of each: 3 parts, but 64 needs 4.
  std::string message = refused_memory({.batch = 64, .bn_group = 8}, 2, 2 * gb + 15 * gb / 2 * 2 / 2);
  EXPECT_TRUE(has(message, "--batch 16 or less, or --accumulate 4 or more")) << message;
  message = refused_memory({.batch = 64, .bn_group = 32}, 1, 3 * gb);
  EXPECT_FALSE(has(message, "--batch")) << message;
}

TEST(Memory, SuggestsNoBatchWhereNoneFits) {
  const std::string message = refused_memory({.batch = 32, .precision = nn::Precision::bf16}, 1, gb);
  EXPECT_TRUE(has(message, "fix: --dry-run reports")) << message;
}

TEST(Memory, HasLimitsOfAProcess) {
  const Recipe recipe{.batch = 64, .accumulate = 2, .deterministic = true, .lanes = 1};
  std::string message = refused_memory(recipe, 1, any, {need.own() + need.shared(1) - 1, any});
  EXPECT_TRUE(has(message, "a rank on node7 needs 9.5 GB")) << message;
  EXPECT_TRUE(has(message, "address space (ulimit -v) leaves 9.5 GB")) << message;
  EXPECT_TRUE(has(message, "--batch 62 or less")) << message;
  EXPECT_TRUE(has(message, "more --lanes")) << message;
  EXPECT_NO_THROW(compare_memory(recipe, need, 1, 1, "node7", any, {need.own() + need.shared(1), need.own()}));
  message = refused_memory(recipe, 1, any, {any, 2 * gb});
  EXPECT_TRUE(has(message, "data (ulimit -d) leaves 2 GB")) << message;
}

TEST(Memory, OtherNodesCanKeepStates) {
  const auto refused_on = [](Strategy strategy, int n_ranks) {
    const Recipe recipe{.batch = 64, .optimizer = {.kind = optim::OptimizerKind::adam}, .strategy = strategy};
    return refused([&] { compare_memory(recipe, need, 2, n_ranks, "node7", gb, {any, any}); });
  };
  EXPECT_TRUE(has(refused_on(Strategy::ddp, 4), "--strategy zero1, which divides"));
  EXPECT_FALSE(has(refused_on(Strategy::ddp, 2), "--strategy"));
  EXPECT_FALSE(has(refused_on(Strategy::zero1, 4), "--strategy"));
}

TEST(Memory, NamesAStrategyThatFits) {
  const Recipe recipe{.batch = 64, .optimizer = {.kind = optim::OptimizerKind::adam}};
  const MemoryNeed all = with_strategy(
      {.activations = gb, .at_a_time = 16, .batch = 64, .arena = 8 * gb, .kept = divided(8 * gb)}, recipe, 4, 1);
  const auto refused_with = [&](std::uint64_t available) {
    return refused([&] { compare_memory(recipe, all, 1, 4, "node7", available, {any, any}); });
  };
  EXPECT_EQ(all.of_node(1), 33 * gb);
  EXPECT_TRUE(has(refused_with(21 * gb), "--strategy zero1, with which it fits"));
  EXPECT_TRUE(has(refused_with(20 * gb), "--strategy zero1, which divides more"));
}

// 16 samples take 8 GB; parameters and gradients take 1 GB, which more ranks do not change.
TEST(Memory, TellsHowManyRanksWouldFit) {
  const Recipe recipe{.batch = 64};
  const MemoryNeed all = with_strategy(
      {.activations = 8 * gb, .at_a_time = 16, .batch = 64, .arena = gb / 2, .kept = divided(gb / 2)}, recipe, 4, 1);
  const auto refused_with = [&](std::uint64_t available) {
    return refused([&] { compare_memory(recipe, all, 1, 4, "node7", available, {any, any}); });
  };
  EXPECT_TRUE(has(refused_with(5 * gb), "at least 8 ranks, each with as much memory"));
  EXPECT_TRUE(has(refused_with(5 * gb - 1), "at least 16 ranks"));
  EXPECT_FALSE(has(refused_with(gb), "at least")) << "no number of ranks would do";
}

}  // namespace
}  // namespace lockstep::training
