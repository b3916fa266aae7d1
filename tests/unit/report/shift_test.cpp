#include "report/shift.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace lockstep::report {
namespace {

using Strata = std::vector<Stratum>;

std::vector<double> ascending(std::size_t n, double first) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// There are C(8, 4) = 70 orders of four times before and four now. U = 0 to 16 occurs in 1, 1, 2, 3, 5, 5, 7, 7, 8, 7,
// 7, 5, 5, 3, 2, 1, 1 of them (Mann and Whitney 1947, table I).
TEST(Shift, OfOneStratumIsTheTestOfMannAndWhitney) {
  const Shift shift{Strata{{{4, 2, 1, 3}, {8, 5, 7, 6}}}};
  EXPECT_EQ(shift.n_pairs(), 16u);
  EXPECT_EQ(shift.effect(), 1);
  EXPECT_DOUBLE_EQ(shift.p_above(1), 1.0 / 70);
  EXPECT_DOUBLE_EQ(shift.p_below(1), 1);
  EXPECT_DOUBLE_EQ(shift.p_above(2), 24.0 / 70);  // 10 of the ratios are above 2, and two are 2
  EXPECT_DOUBLE_EQ(shift.p_below(2), 63.0 / 70);  // 4 are below
}

TEST(Shift, HasTheEstimateAndTheIntervalOfHodgesAndLehmann) {
  const Shift shift{Strata{{{1, 2, 3, 4}, {5, 6, 7, 8}}}};
  EXPECT_DOUBLE_EQ(*shift.ratio(), (2.5 + 8.0 / 3) / 2);  // numbers 8 and 9 of 16 ratios
  ASSERT_TRUE(shift.interval_95());                       // P(U = 16) is 1/70, P(U >= 15) is 2/70 and so above 2.5 %
  EXPECT_DOUBLE_EQ(shift.interval_95()->low, 5.0 / 4);
  EXPECT_DOUBLE_EQ(shift.interval_95()->high, 8);
  EXPECT_DOUBLE_EQ(*shift.lower_bound(2.0 / 70 + 1e-9), 1.5);
  EXPECT_FALSE(shift.lower_bound(0.01));
}

TEST(Shift, ClaimsNothingOfTooFew) {
  const Shift three{Strata{{{1, 2, 3}, {4, 5, 6}}}};
  EXPECT_FALSE(three.interval_95());  // 1/20 on either side
  const Shift none{Strata{}}, one_sided{Strata{{{1, 2}, {}}, {{}, {3}}}};
  for (const Shift& shift : {none, one_sided}) {
    EXPECT_EQ(shift.n_pairs(), 0u);
    EXPECT_FALSE(shift.ratio());
    EXPECT_FALSE(shift.interval_95());
    EXPECT_FALSE(shift.lower_bound(0.5));
    EXPECT_EQ(shift.effect(), 0.5);
    EXPECT_EQ(shift.p_above(1), 1);
    EXPECT_EQ(shift.p_below(1), 1);
  }
}

// U of the first is 0 or 1, of the second 0 to 4 in 1, 1, 2, 1, 1 of 6 orders: their sum is 5 in one of 12.
TEST(Shift, PairsAcrossStrataDoNotCount) {
  const Shift shift{Strata{{{1}, {2}}, {{10, 11}, {12, 13}}}};
  EXPECT_EQ(shift.n_pairs(), 5u);
  EXPECT_DOUBLE_EQ(shift.p_above(1), 1.0 / 12);
  EXPECT_DOUBLE_EQ(shift.p_above(1.1), 3.0 / 12);  // 4 of them: all but 12/11
}

// Half of scipy.stats.mannwhitneyu(range(30), arange(25) + 5.5, method="asymptotic"), as in core/statistics_test.
TEST(Shift, ApproximatesWhereThereAreManyPairs) {
  const Shift shift{Strata{{ascending(30, 1), ascending(25, 6.5)}}};
  EXPECT_NEAR(shift.p_above(1), 0.20792927248164417 / 2, 1e-12);
  EXPECT_EQ(shift.effect(), 450.0 / 750);
}

TEST(Shift, EqualTimesSpeakForNeitherSide) {
  const Shift shift{Strata{{{2, 2}, {2, 2}}}};
  EXPECT_DOUBLE_EQ(shift.p_above(1), 1);
  EXPECT_DOUBLE_EQ(shift.p_below(1), 1);
  EXPECT_EQ(shift.effect(), 0.5);
  EXPECT_EQ(*shift.ratio(), 1);
}

// Holm 1979, calculated by hand: 4 x 0.005, 3 x 0.01, 2 x 0.03, and no less for 0.04.
TEST(AdjustHolm, MultipliesByWhatIsLeft) {
  const std::vector<double> adjusted = adjust_holm(std::vector{0.01, 0.04, 0.03, 0.005});
  EXPECT_DOUBLE_EQ(adjusted[0], 0.03);
  EXPECT_DOUBLE_EQ(adjusted[1], 0.06);
  EXPECT_DOUBLE_EQ(adjusted[2], 0.06);
  EXPECT_DOUBLE_EQ(adjusted[3], 0.02);
  EXPECT_EQ(adjust_holm(std::vector{0.9, 0.8}), (std::vector{1.0, 1.0}));
  EXPECT_TRUE(adjust_holm({}).empty());
}

}  // namespace
}  // namespace lockstep::report
