#include "training/run/display.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/set_clock.hpp"
#include "unit/training/run/example_run.hpp"

namespace lockstep::training {
namespace {

TEST(Display, TellsOfAnEvaluationEveryTwoSeconds) {
  const support::SetClock clock;
  core::Printer printer;
  testing::internal::CaptureStderr();
  {
    Display display{Goal{}, "r", false, printer, clock};
    for (int tenths = 0; tenths < 50; ++tenths, clock.advance({0.1}))
      display.evaluating(example_position(), 0.01 * tenths);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
}

}  // namespace
}  // namespace lockstep::training
