// The loops of softmax for one instruction set.
// Invariant: as softmax_loops.hpp; nothing here but version() has external linkage.
// Compiled once for each instruction set (lockstep_loop_sources).
#include "nn/host/softmax_loops.hpp"

#include <cstdint>

namespace lockstep::nn::host {
namespace {

constexpr std::size_t n_lanes = 16;

/// e^d for d <= 0, within 2^-23 of its value; 0 below the smallest normal number. NaN stays NaN.
[[gnu::always_inline]] inline float exponential(float d) {
  constexpr float least = -87.33f;
  constexpr float shifter = 0x1.8p23f;  // adding it rounds to a whole number, in the last bits
  const float shifted = d * 0x1.715476p0f + shifter;
  const float n = shifted - shifter;
  const float r = d - n * 0x1.63p-1f - n * -0x1.bd0106p-13f;  // ln 2 in two parts; products with the first are exact
  float p = 1.98756915e-4f;
  p = p * r + 1.39819995e-3f;
  p = p * r + 8.33345205e-3f;
  p = p * r + 4.16657962e-2f;
  p = p * r + 1.66666657e-1f;
  p = p * r + 0.5f;
  p = p * (r * r) + r + 1;
  const std::uint32_t power = (__builtin_bit_cast(std::uint32_t, shifted) << 23) + 0x3f80'0000;
  const float result = p * __builtin_bit_cast(float, power);
  const auto kept = 0u - static_cast<std::uint32_t>(!(d < least));
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, result) & kept);
}

/// Calls f(first, n) for runs of n_lanes numbers, with n a constant; then for what is left, if anything.
template <class F>
[[gnu::always_inline]] inline void for_runs(std::size_t n, const F& f) {
  std::size_t i = 0;
  for (; n - i >= n_lanes; i += n_lanes) f(i, n_lanes);
  if (i < n) f(i, n - i);
}

/// Adds up lanes in the order that all sets share.
[[gnu::always_inline]] inline double sum_of(double (&lanes)[n_lanes]) {
  for (std::size_t half = n_lanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

MaxAndTotal max_and_total(const float* x, std::size_t n) {
  float largest[n_lanes];
  double totals[n_lanes] = {};
  for (float& lane : largest) lane = -__builtin_inff();
  for_runs(n, [&](std::size_t first, std::size_t n_here) {
#pragma omp simd
    for (std::size_t lane = 0; lane < n_here; ++lane) {
      const float value = x[first + lane];
      largest[lane] = value > largest[lane] ? value : largest[lane];
    }
#pragma omp simd
    for (std::size_t lane = 0; lane < n_here; ++lane) totals[lane] += static_cast<double>(x[first + lane]);
  });
  float max = largest[0];
  for (const float lane : largest) max = lane > max ? lane : max;
  return {max, sum_of(totals)};
}

double exponentials(const float* x, float shift, std::size_t n, float* out) {
  double sums[n_lanes] = {};
  for_runs(n, [&](std::size_t first, std::size_t n_here) {
    float terms[n_lanes];
#pragma omp simd
    for (std::size_t lane = 0; lane < n_here; ++lane) terms[lane] = exponential(x[first + lane] - shift);
    if (out != nullptr) {
#pragma omp simd
      for (std::size_t lane = 0; lane < n_here; ++lane) out[first + lane] = terms[lane];
    }
#pragma omp simd
    for (std::size_t lane = 0; lane < n_here; ++lane) sums[lane] += static_cast<double>(terms[lane]);
  });
  return sum_of(sums);
}

void scale_and_subtract(const float* x, float factor, float subtracted, float* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i] * factor - subtracted;
}

std::size_t n_before(const float* x, std::size_t n, std::size_t label) {
  const float of_label = x[label];
  std::uint32_t n_found = 0;
#pragma omp simd reduction(+ : n_found)
  for (std::size_t c = 0; c < label; ++c) n_found += static_cast<std::uint32_t>(!(x[c] < of_label));
#pragma omp simd reduction(+ : n_found)
  for (std::size_t c = label + 1; c < n; ++c) n_found += static_cast<std::uint32_t>(!(x[c] <= of_label));
  return n_found;
}

constexpr SoftmaxLoops these_loops{max_and_total, exponentials, scale_and_subtract, n_before};

}  // namespace

template <>
const SoftmaxLoops& SoftmaxLoops::version<core::this_loop_set>() noexcept {
  return these_loops;
}

}  // namespace lockstep::nn::host
