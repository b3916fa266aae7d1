#include "core/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "core/error.hpp"

namespace lockstep::core {
namespace {

constexpr std::size_t least_n_for_p99 = 100;

// A NaN has no rank.
void require_ranks(std::span<const double> sample) {
  require(!sample.empty(), "a sample has at least one value");
  require(std::none_of(sample.begin(), sample.end(), [](double x) { return std::isnan(x); }), "a sample has no NaN");
}

// Probability of k successes in n fair trials.
double binomial_half(std::size_t n, std::size_t k) {
  const auto size = static_cast<double>(n), hits = static_cast<double>(k);
  return std::exp(std::lgamma(size + 1) - std::lgamma(hits + 1) - std::lgamma(size - hits + 1) -
                  size * std::numbers::ln2);
}

struct Ranked {
  double rank_sum_first = 0;
  double tie_term = 0;  // sum of t^3 - t over groups of t equal values
};

// Ranks in the pooled sample; equal values share the mean of their ranks.
Ranked rank_pooled(std::span<const double> first, std::span<const double> second) {
  struct Value {
    double value;
    bool is_first;
  };
  std::vector<Value> pooled;
  pooled.reserve(first.size() + second.size());
  for (const double x : first) pooled.push_back({x, true});
  for (const double x : second) pooled.push_back({x, false});
  std::sort(pooled.begin(), pooled.end(), [](const Value& a, const Value& b) { return a.value < b.value; });

  Ranked result;
  for (std::size_t begin = 0, end = 0; begin < pooled.size(); begin = end) {
    std::size_t n_first = 0;
    for (; end < pooled.size() && pooled[end].value == pooled[begin].value; ++end) n_first += pooled[end].is_first;
    const auto t = static_cast<double>(end - begin);
    result.rank_sum_first += static_cast<double>(n_first) * static_cast<double>(begin + 1 + end) / 2;
    result.tie_term += t * t * t - t;
  }
  return result;
}

double mann_whitney_cdf(std::size_t m, std::size_t n, std::size_t u) {
  const std::vector<double> probability = mann_whitney_distribution(m, n);
  return std::accumulate(probability.begin(), probability.begin() + static_cast<std::ptrdiff_t>(u) + 1, 0.0);
}

// Two-sided p-value from the normal approximation with continuity correction.
double normal_p_value(double distance, double variance) {
  if (variance <= 0) return 1;  // all values equal
  const double z = std::max(0.0, distance - 0.5) / std::sqrt(variance);
  return std::erfc(z / std::numbers::sqrt2);
}

}  // namespace

Summary summarize(std::span<const double> sample) {
  require_ranks(sample);
  std::vector<double> sorted(sample.begin(), sample.end());
  std::sort(sorted.begin(), sorted.end());
  Summary summary;
  summary.n = sorted.size();
  summary.median = quantile(sorted, 0.5);
  summary.median_95 = median_interval(sorted, 0.95);
  if (sorted.size() >= least_n_for_p99) summary.p99 = quantile(sorted, 0.99);
  summary.min = sorted.front();
  summary.max = sorted.back();
  summary.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  return summary;
}

double quantile(std::span<const double> sorted, double q) {
  require(!sorted.empty() && q >= 0 && q <= 1, "a quantile needs a value and 0 <= q <= 1");
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

// The median lies between the k-th smallest and the k-th largest value with probability 1 - 2 P(B < k), B ~ Bin(n,
// 1/2).
std::optional<Interval> median_interval(std::span<const double> sorted, double confidence) {
  const std::size_t n = sorted.size();
  std::size_t k = 0;
  for (double below = binomial_half(n, 0); k < n / 2 && 1 - 2 * below >= confidence; below += binomial_half(n, k)) ++k;
  if (k == 0) return std::nullopt;
  return Interval{.low = sorted[k - 1], .high = sorted[n - k]};
}

// U counts partitions into at most m parts of at most n, whose generating function is the Gaussian binomial
// coefficient, the product over i = 1..m of (1 - q^(n+i)) / (1 - q^i). All counts stay below C(40, 20), so doubles hold
// them exactly.
std::vector<double> mann_whitney_distribution(std::size_t m, std::size_t n) {
  require(m * n <= most_pairs_for_exact, "the exact distribution of U is computed for few pairs only");
  std::vector<double> n_orders(m * n + 1, 0.0);
  n_orders[0] = 1;
  for (std::size_t i = 1; i <= m; ++i) {
    for (std::size_t k = m * n; k >= n + i; --k) n_orders[k] -= n_orders[k - n - i];
    for (std::size_t k = i; k <= m * n; ++k) n_orders[k] += n_orders[k - i];
  }
  const double total = std::accumulate(n_orders.begin(), n_orders.end(), 0.0);
  for (double& count : n_orders) count /= total;
  return n_orders;
}

RankTest mann_whitney(std::span<const double> first, std::span<const double> second) {
  require_ranks(first);
  require_ranks(second);
  const auto n1 = static_cast<double>(first.size()), n2 = static_cast<double>(second.size());
  const double n = n1 + n2, n_pairs = n1 * n2;
  const Ranked ranked = rank_pooled(first, second);
  RankTest test;
  test.u = ranked.rank_sum_first - n1 * (n1 + 1) / 2;
  test.effect = test.u / n_pairs;
  if (ranked.tie_term == 0 && first.size() * second.size() <= most_pairs_for_exact) {
    const auto smaller_u = static_cast<std::size_t>(std::min(test.u, n_pairs - test.u));
    test.p_value = std::min(1.0, 2 * mann_whitney_cdf(first.size(), second.size(), smaller_u));
  } else {
    const double variance = n_pairs / 12 * (n + 1 - ranked.tie_term / (n * (n - 1)));
    test.p_value = normal_p_value(std::abs(test.u - n_pairs / 2), variance);
  }
  return test;
}

}  // namespace lockstep::core
