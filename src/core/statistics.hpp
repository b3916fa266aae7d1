// Descriptive statistics that claim no more than the sample supports.
// Invariant: assumes no distribution; intervals come from order statistics; input order does not matter.
// Used by reduce_all/, comm/distance, metrics/, report/ and `lockstep shard bench`.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::core {

struct Interval {
  double low = 0;
  double high = 0;
};

/// What a sample says about its distribution, in the unit of the sample.
struct Summary {
  std::size_t n = 0;
  double median = 0;
  /// Distribution-free 95 % interval of the median; nothing for fewer than 6 values, for which none exists.
  std::optional<Interval> median_95;
  /// Nothing for fewer than 100 values, because it would be the maximum.
  std::optional<double> p99;
  double min = 0;
  double max = 0;
  double mean = 0;
};

/// `sample` must not be empty or contain a NaN. Sorts a copy: O(n log n).
[[nodiscard]] Summary summarize(std::span<const double> sample);

/// Linear interpolation between order statistics (Hyndman & Fan 1996, type 7); `sorted` ascending, 0 <= q <= 1.
[[nodiscard]] double quantile(std::span<const double> sorted, double q);

/// Order-statistic interval of the median with at least `confidence` coverage (Conover 1999, ch. 3); `sorted`
/// ascending.
[[nodiscard]] std::optional<Interval> median_interval(std::span<const double> sorted, double confidence = 0.95);

/// Up to this many pairs of values the distribution of U is computed exactly.
inline constexpr std::size_t most_pairs_for_exact = 400;

/// P(U = u), u = 0 ... m n, for samples of m and n values from one distribution, without ties. At most
/// `most_pairs_for_exact` pairs.
[[nodiscard]] std::vector<double> mann_whitney_distribution(std::size_t m, std::size_t n);

/// The outcome of a two-sided Mann-Whitney U test.
struct RankTest {
  double u = 0;         ///< U of the first sample
  double p_value = 1;   ///< exact for small samples without ties, else normal approximation with tie correction
  double effect = 0.5;  ///< probability that a value of the first sample exceeds one of the second (ties count half)
};

/// Tests whether two independent samples come from the same distribution (Mann & Whitney 1947). Neither may be empty or
/// contain a NaN.
[[nodiscard]] RankTest mann_whitney(std::span<const double> first, std::span<const double> second);

}  // namespace lockstep::core
