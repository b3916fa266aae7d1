// Estimates the ratio of times now to times before from ranks alone, when only some values may be compared.
// Invariant: assumes no distribution; an estimate that the values do not support is absent, never a guess.
// Used by report/comparison.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/statistics.hpp"

namespace lockstep::report {

/// Times that may be compared with one another, but with no others.
struct Stratum {
  std::vector<double> before;
  std::vector<double> now;
};

/// All pairs of a time before and a time now within strata. With one stratum this is the test of Mann and Whitney
/// (1947) with the estimate of Hodges and Lehmann (1963), for ratios. The U of several strata are added up, as in the
/// statistics of van Elteren (1960).
class Shift {
 public:
  /// Times are above 0.
  explicit Shift(std::span<const Stratum> strata);

  [[nodiscard]] std::size_t n_pairs() const noexcept { return ratios_.size(); }
  /// The median of now / before over the pairs. Nothing without pairs.
  [[nodiscard]] std::optional<double> ratio() const;
  /// The 95 % confidence interval of the ratio.
  [[nodiscard]] std::optional<core::Interval> interval_95() const;
  /// Returns a value that the ratio exceeds with probability 1 - `alpha`.
  [[nodiscard]] std::optional<double> lower_bound(double alpha) const;
  /// The probability that a time now exceeds one before (A of Vargha and Delaney 2000); 0.5 without pairs.
  [[nodiscard]] double effect() const;
  /// The probability of such times, or of more extreme ones, if the ratio is not above `limit` (not below).
  [[nodiscard]] double p_above(double limit) const;
  [[nodiscard]] double p_below(double limit) const;

 private:
  [[nodiscard]] std::optional<std::size_t> fewest_for(double alpha) const;

  std::vector<double> ratios_{};    ///< ascending
  std::vector<double> at_least_{};  ///< by u: the probability that at least u pairs favour one side
};

/// P values adjusted for choosing the smallest of all of them (Holm 1979).
[[nodiscard]] std::vector<double> adjust_holm(std::span<const double> p_values);

}  // namespace lockstep::report
