#include "core/timer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace lockstep::core {
namespace {

TEST(Timer, NeverRunsBackwards) {
  Seconds before = now();
  for (int i = 0; i < 10'000; ++i) {
    const Seconds after = now();
    ASSERT_GE(after, before);
    before = after;
  }
}

TEST(Timer, MeasuresInSeconds) {
  const Stopwatch outer;
  const Stopwatch stopwatch;
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  const Seconds elapsed = stopwatch.elapsed();
  EXPECT_GE(elapsed.value, 0.02);
  EXPECT_LT(elapsed.value, 10);
  EXPECT_GE(outer.elapsed(), elapsed);
}

}  // namespace
}  // namespace lockstep::core
