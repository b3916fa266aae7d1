#include "optim/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "core/error.hpp"
#include "golden.hpp"

namespace lockstep::optim {
namespace {

ScheduleSpec schedule_of(const GoldenCase& golden) {
  const auto kind =
      std::ranges::find(all_schedule_kinds, golden.settings.at("kind"), [](ScheduleKind each) { return name(each); });
  ScheduleSpec spec{.kind = *kind};
  spec.lr = golden.number("lr", spec.lr);
  spec.min_lr = golden.number("min_lr", spec.min_lr);
  spec.gamma = golden.number("gamma", spec.gamma);
  spec.power = golden.number("power", spec.power);
  spec.warmup_factor = golden.number("warmup_factor", spec.warmup_factor);
  spec.warmup_samples = static_cast<std::uint64_t>(golden.number("warmup_samples", 0));
  spec.step_samples = static_cast<std::uint64_t>(golden.number("step_samples", 0));
  spec.total_samples = static_cast<std::uint64_t>(golden.number("total_samples", 0));
  if (golden.settings.contains("milestones")) {
    std::istringstream milestones{golden.settings.at("milestones")};
    for (std::uint64_t samples = 0; milestones >> samples;) spec.milestones.push_back(samples);
  }
  return spec;
}

class GoldenSchedule : public testing::TestWithParam<GoldenCase> {};

// PyTorch multiplies from step to step; both are within a few roundings of double.
TEST_P(GoldenSchedule, EqualsPyTorch) {
  const ScheduleSpec spec = schedule_of(GetParam());
  check(spec);
  ASSERT_FALSE(GetParam().rows.empty());
  for (const GoldenRow& row : GetParam().rows)
    EXPECT_NEAR(learning_rate(spec, row.at), row.values.at(0), 2e-14 * spec.lr) << "after " << row.at << " samples";
}

INSTANTIATE_TEST_SUITE_P(All, GoldenSchedule, testing::ValuesIn(read_golden("schedules.txt")),
                         [](const auto& test) { return test.param.name; });

TEST(Schedule, ConstantIsConstant) {
  const ScheduleSpec spec{.lr = 0.25};
  EXPECT_EQ(learning_rate(spec, 0), 0.25);
  EXPECT_EQ(learning_rate(spec, std::numeric_limits<std::uint64_t>::max()), 0.25);
}

TEST(Schedule, WarmUpEndsAtItsSample) {
  const ScheduleSpec spec{.lr = 2, .warmup_samples = 1000, .warmup_factor = 0};
  EXPECT_EQ(learning_rate(spec, 0), 0);
  EXPECT_EQ(learning_rate(spec, 500), 1);
  EXPECT_LT(learning_rate(spec, 999), 2);
  EXPECT_EQ(learning_rate(spec, 1000), 2);
  EXPECT_EQ(learning_rate(spec, 1001), 2);
}

TEST(Schedule, DecaysAtTheSampleItself) {
  const ScheduleSpec step{.kind = ScheduleKind::step, .lr = 1, .gamma = 0.5, .step_samples = 100};
  EXPECT_EQ(learning_rate(step, 99), 1);
  EXPECT_EQ(learning_rate(step, 100), 0.5);
  EXPECT_EQ(learning_rate(step, 350), 0.125);
  const ScheduleSpec multistep{.kind = ScheduleKind::multistep, .lr = 1, .gamma = 0.5, .milestones = {100, 150}};
  EXPECT_EQ(learning_rate(multistep, 99), 1);
  EXPECT_EQ(learning_rate(multistep, 100), 0.5);
  EXPECT_EQ(learning_rate(multistep, 149), 0.5);
  EXPECT_EQ(learning_rate(multistep, 1'000'000), 0.25);
}

TEST(Schedule, StaysAtTheEndBeyondTheTotal) {
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::polynomial}) {
    const ScheduleSpec spec{
        .kind = kind, .lr = 1, .warmup_samples = 10, .total_samples = 100, .min_lr = 0.125, .power = 2};
    EXPECT_GT(learning_rate(spec, 99), 0.125) << name(kind);
    for (const std::uint64_t seen : {100U, 101U, 150U, 190U, 1'000'000U}) EXPECT_EQ(learning_rate(spec, seen), 0.125);
  }
}

// 9,600 samples in batches of 32 and of 96: both have the same rate at every common sample count.
TEST(Schedule, DoesNotKnowTheBatch) {
  const ScheduleSpec spec{.kind = ScheduleKind::cosine, .lr = 0.7, .warmup_samples = 1000, .total_samples = 9600};
  const auto rates = [&](std::uint64_t batch) {
    std::map<std::uint64_t, double> by_samples;
    for (std::uint64_t seen = 0; seen < 9600; seen += batch) by_samples[seen] = learning_rate(spec, seen);
    return by_samples;
  };
  const auto small = rates(32);
  for (const auto& [seen, rate] : rates(96)) EXPECT_EQ(rate, small.at(seen));
}

struct BadSchedule {
  std::string key;
  ScheduleKind kind;
  std::function<void(ScheduleSpec&)> spoil;
};

TEST(Schedule, NamesTheKeyOutOfRange) {
  using enum ScheduleKind;
  const ScheduleSpec good{.lr = 0.1, .step_samples = 10, .milestones = {10, 20}, .total_samples = 100};
  const std::vector<BadSchedule> values{
      {"lr", constant, [](auto& s) { s.lr = -0.1; }},
      {"lr", cosine, [](auto& s) { s.lr = std::numeric_limits<double>::infinity(); }},
      {"warmup-factor", constant, [](auto& s) { s.warmup_factor = 1.5; }},
      {"gamma", step, [](auto& s) { s.gamma = 0; }},
      {"step-samples", step, [](auto& s) { s.step_samples = 0; }},
      {"milestones", multistep, [](auto& s) { s.milestones.clear(); }},
      {"milestones", multistep,
       [](auto& s) {
         s.milestones = {20, 20};
       }},
      {"total-samples", cosine, [](auto& s) { s.total_samples = 0; }},
      {"total-samples", polynomial, [](auto& s) { s.warmup_samples = 100; }},
      {"min-lr", cosine, [](auto& s) { s.min_lr = 0.2; }},
      {"power", polynomial, [](auto& s) { s.power = -1; }},
  };
  for (const BadSchedule& bad : values) {
    ScheduleSpec spec = good;
    spec.kind = bad.kind;
    EXPECT_NO_THROW(check(spec));
    bad.spoil(spec);
    const auto error = core::complaint_of([&] { check(spec); });
    ASSERT_TRUE(error) << bad.key << " of " << name(bad.kind);
    EXPECT_EQ(error->code(), core::ExitCode::usage);
    EXPECT_EQ(error->problem().where, bad.key);
    EXPECT_FALSE(error->problem().expected.empty());
  }
}

}  // namespace
}  // namespace lockstep::optim
