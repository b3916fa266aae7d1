#include "training/progress.hpp"

#include <gtest/gtest.h>

#include "support/set_clock.hpp"

namespace lockstep::training {
namespace {

TEST(Progress, TellsShareRateAndTimeLeft) {
  EXPECT_EQ(progress_line("packing", ProgressUnit::samples, 250, 1000, {2}, 0),
            "packing 25 %  125 samples/s  6.00 s left");
  EXPECT_EQ(progress_line("packing", ProgressUnit::samples, 50'000, 100'000, {1}, 0),
            "packing 50 %  50 k samples/s  1.00 s left");
  EXPECT_EQ(progress_line("verifying", ProgressUnit::bytes, 5'000'000, 10'000'000, {5}, 0),
            "verifying 50 %  1 MB/s  5.00 s left");
  EXPECT_EQ(progress_line("measuring", ProgressUnit::stages, 5, 35, {1}, 0), "measuring 14 %  6.00 s left");
}

TEST(Progress, DrawsABarOfTheAskedWidth) {
  EXPECT_EQ(progress_line("packing", ProgressUnit::samples, 0, 10, {3}, 10), "packing [          ] 0 %");
  EXPECT_NE(progress_line("packing", ProgressUnit::samples, 5, 10, {3}, 10).find("[=====     ] 50 %"),
            std::string::npos);
  EXPECT_NE(progress_line("packing", ProgressUnit::samples, 11, 10, {3}, 10).find("[==========] 100 %"),
            std::string::npos);
}

TEST(Progress, NothingToDoIsDone) {
  EXPECT_EQ(progress_line("packing", ProgressUnit::samples, 0, 0, {3}, 0), "packing 100 %");
}

TEST(Progress, IsQuietAboutShortWorkAndThenTellsEveryTenSeconds) {
  const support::SetClock clock;
  testing::internal::CaptureStderr();
  {
    Progress progress{"packing", ProgressUnit::samples, true, clock};
    for (std::uint64_t second = 0; second < 25; ++second, clock.advance({1})) EXPECT_TRUE(progress.update(second, 100));
    Progress elsewhere{"packing", ProgressUnit::samples, false, clock};
    clock.advance({100});
    EXPECT_TRUE(elsewhere.update(1, 10));
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "packing 10 %  1 samples/s  90.0 s left\n"
            "packing 20 %  1 samples/s  80.0 s left\n");
}

TEST(Progress, WithoutASignalItGoesOn) {
  Progress progress{"packing", ProgressUnit::samples, true};
  testing::internal::CaptureStderr();
  EXPECT_TRUE(progress.update(1, 10));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "short work is to be quiet";
}

}  // namespace
}  // namespace lockstep::training
