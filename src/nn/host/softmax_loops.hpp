// The loops of softmax over a row: the classes of one sample. One set per instruction set, chosen at run time.
// Invariant: every set computes the same bits: one polynomial without fused products, and sums in 16 lanes of double,
// which a fixed tree adds up. A row's results depend on nothing but the row.
// Used by the loss and by ops/log_softmax.
//
// Errors against double, of n finite numbers with maximum m, u = 2^-24:
// - e^(x - m): (2 + m - x) u of its value; 0 where it is below 2^-126;
// - the logarithm of their sum, and so a loss: (2 + ln n) u, absolute: the mean of m - x by softmax is at most ln n;
// - softmax: (5 + ln n) u, absolute.
#pragma once

#include <cstddef>

#include "core/loop_sets.hpp"

namespace lockstep::nn::host {

struct MaxAndTotal {
  float max;     ///< of all that is not NaN; -infinity if nothing else is there
  double total;  ///< the sum of all
};

struct SoftmaxLoops {
  template <core::LoopSet set>
  [[nodiscard]] static const SoftmaxLoops& version() noexcept;

  MaxAndTotal (*max_and_total)(const float* x, std::size_t n);
  /// Returns the sum of e^(x - shift), each x <= shift or NaN. Writes the terms to `out`, which may be x, unless null.
  double (*exponentials)(const float* x, float shift, std::size_t n, float* out);
  /// x * factor - subtracted. `out` may be x.
  void (*scale_and_subtract)(const float* x, float factor, float subtracted, float* out, std::size_t n);
  /// Returns how many of x rank before x[label]. The first of equals ranks first, NaN ranks before all.
  std::size_t (*n_before)(const float* x, std::size_t n, std::size_t label);
};

[[nodiscard]] inline const SoftmaxLoops& softmax_loops() noexcept {
  return *core::available_loops<SoftmaxLoops>().back();
}

}  // namespace lockstep::nn::host
