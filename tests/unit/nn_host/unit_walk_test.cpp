#include <gtest/gtest.h>

#include <utility>

#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

TEST(HostUnits, AreWalkedInOneOrderWithAnyNumberOfSamples) {
  for (const WalkCase& one : walk_cases()) {
    ExecutorOptions options = options_of(one.given);
    options.place = place_with_gaps;
    Harness harness{one.given, options};
    const auto walked = [&] { return std::exchange(harness.walked, {}); };
    for (const std::uint64_t n : {harness.samples.n, one.fewest, std::uint64_t{0}}) {
      SCOPED_TRACE(one.given.name + " with " + std::to_string(n) + " samples");
      const data::Batch batch = harness.samples.batch(0, n);
      harness.forward(batch, false);
      EXPECT_EQ(walked(), one.forward);
      for (const bool adds : {false, true}) {
        harness.forward(batch);
        EXPECT_EQ(walked(), one.forward);
        harness.backward(1, adds);
        EXPECT_EQ(walked(), one.backward);
      }
      EXPECT_EQ(harness.not_finite(), "");
      EXPECT_EQ(walked(), "") << "a rank repeats its pass alone";
    }
  }
}

}  // namespace
}  // namespace lockstep::nn::host
