// Which plan is used, with made-up plans and a made-up clock.
#include "nn/cuda/plan_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace lockstep::nn::cuda {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Plans that take the given times, by name.
class MadeUpPlans final : public PlanMaker {
 public:
  struct Plan {
    std::string name;
    double seconds;
  };
  /// The last `n_late` are left out to save time.
  explicit MadeUpPlans(std::vector<Plan> plans, std::size_t n_late = 0) : plans_{std::move(plans)}, n_late_{n_late} {}

  std::vector<std::string> offer(bool all) override {
    has_all_ = has_all_ || all;
    std::vector<std::string> names;
    for (const Plan& plan : plans_) names.push_back(plan.name);
    if (!has_all_) names.resize(names.size() - n_late_);
    return names;
  }
  double seconds(std::size_t plan) override {
    ++n_runs;
    return plans_[plan].seconds;
  }
  void note(std::span<const double> medians) override { noted.assign(medians.begin(), medians.end()); }
  [[nodiscard]] std::string obstacle() const override { return "out of luck"; }
  std::vector<std::byte> store(std::size_t plan) override {
    const auto bytes = std::as_bytes(std::span{plans_[plan].name});
    return {bytes.begin(), bytes.end()};
  }

  int n_runs = 0;
  std::vector<double> noted{};

 private:
  std::vector<Plan> plans_;
  std::size_t n_late_;
  bool has_all_ = false;
};

std::string chosen(MadeUpPlans& plans, PlanCache& cache, const std::function<void(std::span<double>)>& agree = {}) {
  choose_plan("a problem", plans, cache, agree);
  return cache.find("a problem")->name;
}

TEST(PlanChoice, IsTheFastestThatRuns) {
  PlanCache cache{"", "here"};
  MadeUpPlans plans{{{"first", 3}, {"broken", never}, {"fast", 2}, {"slow", 9}}};
  EXPECT_EQ(chosen(plans, cache), "fast");
  EXPECT_EQ(cache.find("a problem")->seconds, 2);
  EXPECT_EQ(cache.find("a problem")->code, plans.store(2));
  EXPECT_EQ(plans.noted, (std::vector<double>{3, never, 2, 9})) << "of those that it was not, too";
}

TEST(PlanChoice, TimesNothingThatIsKnown) {
  PlanCache cache{"", "here"};
  cache.add("a problem", {"slow", 9, {}});
  MadeUpPlans plans{{{"fast", 2}, {"slow", 9}}};
  EXPECT_EQ(chosen(plans, cache), "slow");
  EXPECT_EQ(plans.n_runs, 0);
  EXPECT_TRUE(plans.noted.empty());
}

TEST(PlanChoice, TimesWhatIsKnownWhereItIsMadeAnew) {
  PlanCache cache{"", "here"};
  cache.add("a problem", {"slow", 9, {}});
  MadeUpPlans plans{{{"fast", 2}, {"slow", 9}}};
  choose_plan("a problem", plans, cache, {}, true);
  EXPECT_EQ(cache.find("a problem")->name, "fast");
  EXPECT_GT(plans.n_runs, 0);
}

TEST(PlanChoice, IsThatOfTheRankWhoseTimesDecide) {
  std::vector<double> told;
  PlanCache first{"", "here"};
  MadeUpPlans there{{{"a", 1}, {"b", 2}}};
  EXPECT_EQ(chosen(there, first, [&](std::span<double> times) { told.assign(times.begin(), times.end()); }), "a");
  const auto listen = [&](std::span<double> times) { std::ranges::copy(told, times.begin()); };
  for (const bool knows_another : {false, true}) {
    PlanCache cache{"", "here"};
    if (knows_another) cache.add("a problem", {"b", 1, {}});
    MadeUpPlans here{{{"a", 2}, {"b", 1}}};
    EXPECT_EQ(chosen(here, cache, listen), "a");
    EXPECT_EQ(cache.find("a problem")->code, here.store(0));
  }
  PlanCache cache{"", "here"};
  MadeUpPlans others{{{"c", 1}}};
  EXPECT_ANY_THROW(chosen(others, cache, listen)) << "another library";
}

// That rank had time for more plans.
TEST(PlanChoice, IsThatOfARankWithMoreTime) {
  const std::vector<MadeUpPlans::Plan> plans{{"a", 2}, {"b", 1}};
  std::vector<double> told;
  PlanCache first{"", "here"}, second{"", "here"}, third{"", "here"};
  MadeUpPlans there{plans}, here{plans, 1}, alone{plans, 1};
  EXPECT_EQ(chosen(there, first, [&](std::span<double> times) { told.assign(times.begin(), times.end()); }), "b");
  EXPECT_EQ(chosen(here, second, [&](std::span<double> times) { std::ranges::copy(told, times.begin()); }), "b");
  EXPECT_EQ(chosen(alone, third), "a") << "what nobody needs takes no time";
}

// Every rank reports its result before it fails, so that none waits for it.
TEST(PlanChoice, FailsTogetherWhereNothingRuns) {
  int n_told = 0;
  PlanCache cache{"", "here"};
  MadeUpPlans plans{{{"broken", never}}};
  try {
    chosen(plans, cache, [&](std::span<double> times) { n_told += times[0] < 0 ? 1 : 0; });
    ADD_FAILURE() << "nothing runs";
  } catch (const core::Error& error) {
    EXPECT_NE(std::string{error.what()}.find("runs here: out of luck"), std::string::npos) << error.what();
  }
  EXPECT_EQ(n_told, 1);
  EXPECT_TRUE(plans.noted.empty());
}

TEST(MedianSeconds, AreOfFiveTurnsAfterAColdOne) {
  std::vector<std::size_t> turns;
  const std::vector<double> of_first{6, 5, 1, 2, 1, 9};  // the first turn is cold
  std::vector<std::size_t> n_turns(2);
  const auto medians = median_seconds(2, [&](std::size_t i) {
    turns.push_back(i);
    const std::size_t turn = n_turns[i]++;
    return i == 0 ? of_first[turn] : 1.25;
  });
  EXPECT_EQ(turns, (std::vector<std::size_t>{0, 1, 0, 1, 1, 1, 1, 1})) << "what was hopeless once is out";
  EXPECT_EQ(medians[0], 5);
  EXPECT_EQ(medians[1], 1.25);
}

TEST(MedianSeconds, LeaveOutAtOnceWhatIsFarOff) {
  std::vector<std::size_t> n_turns(3);
  const auto medians = median_seconds(3, [&](std::size_t i) {
    ++n_turns[i];
    return i == 0 ? 7.0 : i == 1 ? 0.009 : 0.0001;  // the second may have loaded code
  });
  EXPECT_EQ(n_turns, (std::vector<std::size_t>{1, 2, 6}));
  EXPECT_TRUE(std::isinf(medians[0]));
  EXPECT_EQ(medians[1], 0.009);
}

TEST(MedianSeconds, ForgiveOneSlowTurn) {
  const std::vector<double> of_first{1, 1, 9, 1, 1, 1};
  std::size_t turn = 0;
  const auto medians = median_seconds(2, [&](std::size_t i) { return i == 0 ? of_first[turn++] : 1.25; });
  EXPECT_EQ(turn, of_first.size());
  EXPECT_EQ(medians[0], 1);
}

}  // namespace
}  // namespace lockstep::nn::cuda
