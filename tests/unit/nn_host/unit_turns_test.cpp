#include "unit/nn/unit_turns.hpp"

#include <gtest/gtest.h>

#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

std::unique_ptr<Executor> make_host_executor(const Network& network, const ExecutorOptions& options) {
  return std::make_unique<HostExecutor>(network, options);
}

/// Returns how often units took turns.
std::size_t expect_same_in_pools(const Case& given, ExecutorOptions options, std::initializer_list<std::size_t> sizes) {
  options.is_deterministic = true;
  const TurnsOutcome whole = pass_in_arenas(make_host_executor, given, options);
  EXPECT_EQ(whole.results.not_finite, "") << given.name;
  std::size_t n_turns = 0;
  for (const std::size_t n_places : sizes) {
    const TurnsOutcome pooled = pass_in_pool(make_host_executor, given, options, whole.together, n_places);
    EXPECT_TRUE(pooled.results == whole.results) << given.name << " in " << n_places;
    EXPECT_EQ(pooled.together, whole.together) << given.name;
    n_turns += pooled.n_turns;
  }
  return n_turns;
}

TEST(HostUnits, GiveTheSameBitsWhenTheyTakeTurns) {
  for (const WalkCase& one : walk_cases()) {
    const bool is_large = one.given.name == "resnet18_cifar";
    for (const Precision precision : precisions()) {
      if (is_large && precision != Precision::f32) continue;
      ExecutorOptions options = options_of(one.given, precision);
      options.place = place_with_gaps;
      const bool has_turns = one.given.name != "toy" && one.given.name != "tied";  // one unit, or all from end to end
      const std::size_t n_turns = is_large ? expect_same_in_pools(one.given, options, {2})
                                           : expect_same_in_pools(one.given, options, {1, 2, 3});
      EXPECT_EQ(n_turns > 0, has_turns) << one.given.name;
    }
  }
}

TEST(HostUnits, OfDrawnNetworksGiveTheSameBitsWhenTheyTakeTurns) {
  std::size_t n_turns = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Case given = drawn_case(seed);
    ExecutorOptions options = options_of(given);
    options.place = drawn_units(seed);
    n_turns += expect_same_in_pools(given, options, {1, 2, 3});
  }
  EXPECT_GT(n_turns, 2'000U);
}

}  // namespace
}  // namespace lockstep::nn::host
