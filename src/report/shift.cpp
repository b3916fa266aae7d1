#include "report/shift.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::report {
namespace {

std::vector<double> convolve(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> sum(a.size() + b.size() - 1, 0.0);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) sum[i + j] += a[i] * b[j];
  return sum;
}

// P(U >= u) for the sum of independent U, one for each stratum.
std::vector<double> exact_tail(std::span<const Stratum> strata) {
  std::vector<double> probability{1.0};
  for (const Stratum& s : strata)
    probability = convolve(probability, core::mann_whitney_distribution(s.before.size(), s.now.size()));
  std::vector<double> tail(probability.size());
  double sum = 0;
  for (std::size_t u = probability.size(); u-- > 0;) tail[u] = std::min(1.0, sum += probability[u]);
  return tail;
}

// The same by the normal approximation with continuity correction.
std::vector<double> normal_tail(std::span<const Stratum> strata, std::size_t n_pairs) {
  double variance = 0;
  for (const Stratum& s : strata) {
    const auto m = static_cast<double>(s.before.size()), n = static_cast<double>(s.now.size());
    variance += m * n * (m + n + 1) / 12;
  }
  std::vector<double> tail(n_pairs + 1);
  for (std::size_t u = 0; u <= n_pairs; ++u) {
    const double above_mean = static_cast<double>(u) - 0.5 - static_cast<double>(n_pairs) / 2;
    tail[u] = std::erfc(above_mean / std::sqrt(2 * variance)) / 2;
  }
  return tail;
}

}  // namespace

Shift::Shift(std::span<const Stratum> strata) {
  for (const Stratum& s : strata)
    for (const double before : s.before)
      for (const double now : s.now) ratios_.push_back(now / before);
  std::sort(ratios_.begin(), ratios_.end());
  at_least_ = n_pairs() <= core::most_pairs_for_exact ? exact_tail(strata) : normal_tail(strata, n_pairs());
}

std::optional<double> Shift::ratio() const {
  if (ratios_.empty()) return std::nullopt;
  return core::quantile(ratios_, 0.5);
}

// The smallest number of pairs in favour of one side that is less probable than `alpha`.
std::optional<std::size_t> Shift::fewest_for(double alpha) const {
  const auto found = std::ranges::find_if(at_least_, [alpha](double p) { return p <= alpha; });
  if (found == at_least_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - at_least_.begin());
}

std::optional<core::Interval> Shift::interval_95() const {
  const auto fewest = fewest_for(0.025);
  if (!fewest) return std::nullopt;
  return core::Interval{.low = ratios_[n_pairs() - *fewest], .high = ratios_[*fewest - 1]};
}

std::optional<double> Shift::lower_bound(double alpha) const {
  const auto fewest = fewest_for(alpha);
  if (!fewest) return std::nullopt;
  return ratios_[n_pairs() - *fewest];
}

double Shift::effect() const {
  if (ratios_.empty()) return 0.5;
  const auto [first, last] = std::equal_range(ratios_.begin(), ratios_.end(), 1.0);
  const auto n_above = static_cast<double>(ratios_.end() - last);
  return (n_above + static_cast<double>(last - first) / 2) / static_cast<double>(n_pairs());
}

// A pair at the limit speaks for neither.
double Shift::p_above(double limit) const {
  return at_least_[static_cast<std::size_t>(ratios_.end() - std::ranges::upper_bound(ratios_, limit))];
}

double Shift::p_below(double limit) const {
  return at_least_[static_cast<std::size_t>(std::ranges::lower_bound(ratios_, limit) - ratios_.begin())];
}

std::vector<double> adjust_holm(std::span<const double> p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return p_values[i]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, static_cast<double>(order.size() - i) * p_values[order[i]]);
    adjusted[order[i]] = std::min(1.0, largest);
  }
  return adjusted;
}

}  // namespace lockstep::report
