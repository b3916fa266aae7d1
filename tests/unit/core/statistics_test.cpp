#include "core/statistics.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "thrown.hpp"

namespace lockstep::core {
namespace {

std::vector<double> ascending(std::size_t n, double first = 1) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// numpy.quantile([1, 2, 4, 8, 16], q), whose default method is type 7.
TEST(Statistics, QuantileInterpolatesLinearly) {
  const std::vector<double> sorted{1, 2, 4, 8, 16};
  EXPECT_DOUBLE_EQ(quantile(sorted, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.1), 1.4);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.25), 2);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.5), 4);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.9), 12.8);
  EXPECT_DOUBLE_EQ(quantile(sorted, 1), 16);
  EXPECT_DOUBLE_EQ(quantile(std::vector{3.0}, 0.7), 3);
}

// The k for which the k-th smallest and k-th largest value enclose the median with at least the confidence: exact
// rational arithmetic, sum of math.comb(n, i) / 2^n, in Python; from n = 20000 on scipy.stats.binom. The small ones
// equal the usual tables of the sign test.
TEST(Statistics, MedianIntervalHasTheRanksOfTheBinomialTable) {
  struct Case {
    std::size_t n, k_95, k_99;  // 0: no such interval
  };
  for (const auto& [n, k_95, k_99] :
       {Case{1, 0, 0}, Case{2, 0, 0}, Case{5, 0, 0}, Case{6, 1, 0}, Case{7, 1, 0}, Case{8, 1, 1}, Case{9, 2, 1},
        Case{10, 2, 1}, Case{15, 4, 3}, Case{20, 6, 4}, Case{25, 8, 6}, Case{50, 18, 16}, Case{100, 40, 37},
        Case{101, 41, 38}, Case{1000, 469, 459}}) {
    for (const auto& [k, confidence] : {std::pair{k_95, 0.95}, std::pair{k_99, 0.99}}) {
      const auto interval = median_interval(ascending(n), confidence);
      ASSERT_EQ(interval.has_value(), k > 0) << n;
      if (!interval) continue;
      EXPECT_EQ(interval->low, static_cast<double>(k)) << n;
      EXPECT_EQ(interval->high, static_cast<double>(n + 1 - k)) << n;
    }
  }
  EXPECT_EQ(median_interval(ascending(20'000))->low, 9861);
  EXPECT_EQ(median_interval(ascending(1'000'000))->low, 499'020);
  EXPECT_FALSE(median_interval({}));
}

TEST(Statistics, SummaryOfSquaresIndependentOfOrder) {
  std::vector<double> squares = ascending(100);
  for (double& x : squares) x *= x;
  std::swap(squares[0], squares[99]);
  std::swap(squares[10], squares[60]);
  const Summary summary = summarize(squares);
  EXPECT_EQ(summary.n, 100u);
  EXPECT_DOUBLE_EQ(summary.median, 2550.5);
  EXPECT_DOUBLE_EQ(summary.mean, 3383.5);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 10'000);
  ASSERT_TRUE(summary.median_95);
  EXPECT_EQ(summary.median_95->low, 40 * 40);
  EXPECT_EQ(summary.median_95->high, 61 * 61);
  ASSERT_TRUE(summary.p99);
  EXPECT_DOUBLE_EQ(*summary.p99, 9802.99);  // 99^2 + 0.01 * (100^2 - 99^2)
}

TEST(Statistics, SummaryClaimsNoMoreThanTheSampleSupports) {
  EXPECT_FALSE(summarize(ascending(5)).median_95);
  EXPECT_TRUE(summarize(ascending(6)).median_95);
  EXPECT_FALSE(summarize(ascending(99)).p99);
  EXPECT_TRUE(summarize(ascending(100)).p99);
}

struct RankCase {
  std::vector<double> first, second;
  double u, p_value;
};

void expect_ranks(const RankCase& expected) {
  const RankTest test = mann_whitney(expected.first, expected.second);
  EXPECT_DOUBLE_EQ(test.u, expected.u);
  EXPECT_NEAR(test.p_value, expected.p_value, 1e-12);
  const double n_pairs = static_cast<double>(expected.first.size() * expected.second.size());
  EXPECT_DOUBLE_EQ(test.effect, expected.u / n_pairs);

  const RankTest turned = mann_whitney(expected.second, expected.first);
  EXPECT_DOUBLE_EQ(turned.u, n_pairs - expected.u);
  EXPECT_NEAR(turned.p_value, expected.p_value, 1e-12);
}

// scipy.stats.mannwhitneyu(first, second, method="exact"), version 1.17.1. The first is example 4.1 of Hollander and
// Wolfe, Nonparametric Statistical Methods; {1, 2, 3, 4} against {5, 6, 7, 8} is 2 / C(8, 4).
TEST(Statistics, MannWhitneyIsExactForSmallSamplesWithoutTies) {
  expect_ranks({{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46},
                {1.15, 0.88, 0.90, 0.74, 1.21},
                35,
                0.2544122544122544});
  expect_ranks({{1, 2, 3, 4}, {5, 6, 7, 8}, 0, 2.0 / 70});
  expect_ranks({{1, 4, 5}, {2, 3, 6, 7}, 4, 0.6285714285714286});
  expect_ranks({{1, 3}, {2}, 1, 1});
  expect_ranks({ascending(20, 0), ascending(20, 7.5), 78, 0.0006675619675571311});
}

// The same with method="asymptotic".
TEST(Statistics, MannWhitneyApproximatesLargeSamplesAndTies) {
  expect_ranks({ascending(30, 0), ascending(25, 5.5), 300, 0.20792927248164417});
  expect_ranks({{1, 2, 2, 3, 3, 3, 4, 4, 5}, {2, 3, 3, 4, 4, 4, 5, 5, 6, 6}, 23, 0.07274037147127935});
  expect_ranks({{1, 1}, {1, 1, 1}, 3, 1});
}

TEST(Statistics, RejectsWhatHasNoRanks) {
  const std::vector<double> none, one{1}, holed{1, std::numeric_limits<double>::quiet_NaN(), 2};
  for (const auto& bad : {none, holed}) {
    EXPECT_TRUE(thrown_by([&] { static_cast<void>(summarize(bad)); }));
    EXPECT_TRUE(thrown_by([&] { static_cast<void>(mann_whitney(bad, one)); }));
    EXPECT_TRUE(thrown_by([&] { static_cast<void>(mann_whitney(one, bad)); }));
  }
  EXPECT_TRUE(thrown_by([&] { static_cast<void>(quantile(none, 0.5)); }));
  EXPECT_TRUE(thrown_by([&] { static_cast<void>(quantile(one, 1.1)); }));
}

}  // namespace
}  // namespace lockstep::core
