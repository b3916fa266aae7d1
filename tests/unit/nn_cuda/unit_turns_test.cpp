#include "unit/nn/unit_turns.hpp"

#include <gtest/gtest.h>

#include "nn/cuda/cuda_executor.hpp"
#include "support/test_convolutions.hpp"
#include "support/test_device.hpp"

namespace lockstep::nn::cuda {
namespace {

/// Returns how often units took turns.
std::size_t expect_same_in_pools(const Case& given, const ExecutorOptions& options,
                                 std::initializer_list<std::size_t> sizes) {
  const auto convolutions = test::make_convolutions();
  const auto make = [&](const Network& network, const ExecutorOptions& for_network) {
    return make_cuda_executor(network, for_network, *convolutions);
  };
  const TurnsOutcome whole = pass_in_arenas(make, given, options);
  std::size_t n_turns = 0;
  for (const std::size_t n_places : sizes) {
    const TurnsOutcome pooled = pass_in_pool(make, given, options, whole.together, n_places);
    EXPECT_TRUE(pooled.results == whole.results) << given.name << " in " << n_places;
    EXPECT_EQ(pooled.together, whole.together) << given.name;
    n_turns += pooled.n_turns;
  }
  return n_turns;
}

TEST(CudaUnits, GiveTheSameBitsWhenTheyTakeTurns) {
  const test::TestDevice device{runtime::kernel::ThreadOrder::ascending};
  std::size_t n_turns = 0;
  for (const WalkCase& one : walk_cases()) {
    if (one.given.name == "resnet18_cifar") continue;  // takes minutes
    for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f16}) {
      ExecutorOptions options = options_of(one.given, precision);
      options.place = place_with_gaps;
      n_turns += expect_same_in_pools(one.given, options, {1, 2});
    }
  }
  EXPECT_GT(n_turns, 0U);
  for (const std::string& complaint : device.complaints()) ADD_FAILURE() << complaint;
}

TEST(CudaUnits, OfDrawnNetworksGiveTheSameBitsWhenTheyTakeTurns) {
  const test::TestDevice device{runtime::kernel::ThreadOrder::ascending};
  std::size_t n_turns = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Case given = drawn_case(seed);
    ExecutorOptions options = options_of(given, seed % 2 == 0 ? Precision::f32 : Precision::bf16);
    options.place = drawn_units(seed);
    n_turns += expect_same_in_pools(given, options, {1 + seed % 3});
  }
  EXPECT_GT(n_turns, 100U);
  for (const std::string& complaint : device.complaints()) ADD_FAILURE() << complaint;
}

}  // namespace
}  // namespace lockstep::nn::cuda
