#include "training/train/time_limit.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>

namespace lockstep::training {
namespace {

TEST(TimeLimit, IsNearWhenASaveAndTheStepsBeforeItJustFit) {
  EXPECT_FALSE(TimeLimit{std::nullopt}.is_near());
  TimeLimit limit{core::Seconds{100}};
  EXPECT_TRUE(limit.is_known());
  EXPECT_LE(limit.left().value, 100);
  EXPECT_GT(limit.left().value, 50);
  EXPECT_FALSE(limit.is_near());
  limit.expect({500'000'000});  // 5 s at 100 MB/s
  limit.step_made({0.5});
  limit.step_made({1});
  EXPECT_DOUBLE_EQ(limit.reserve().value, 2 * 5 + 3 * 1 + 2);
  limit.saved({1});  // the slowest counts
  EXPECT_DOUBLE_EQ(limit.reserve().value, 15);
  EXPECT_FALSE(limit.is_near());
  limit.saved({45});
  EXPECT_FALSE(limit.is_near());  // 95 s
  limit.step_made({10});
  EXPECT_TRUE(limit.is_near());
}

TEST(TimeLimit, OfTheJobIsWhatSlurmSays) {
  unsetenv("SLURM_JOB_END_TIME");
  EXPECT_FALSE(time_left_of_job());
  const auto set = [](const std::string& text) { setenv("SLURM_JOB_END_TIME", text.c_str(), 1); };
  set(std::to_string(std::time(nullptr) + 600));
  ASSERT_TRUE(time_left_of_job());
  EXPECT_NEAR(time_left_of_job()->value, 600, 5);
  for (const std::string& text : {std::string{}, std::string{"soon"}, std::string{"12x"}, std::string{"-5"},
                                  std::to_string(std::time(nullptr) - 5), std::string{"99999999999999999999"}}) {
    set(text);
    EXPECT_FALSE(time_left_of_job()) << text;
  }
  unsetenv("SLURM_JOB_END_TIME");
}

}  // namespace
}  // namespace lockstep::training
