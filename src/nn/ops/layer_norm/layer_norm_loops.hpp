// The loops of layer normalization on the host, one set per instruction set.
// Invariant: every set computes the same bits. A row's results depend on the row alone, a column's sums on the order of
// rows alone, so threads may share both.
// Used by host.cpp.
#pragma once

#include <cstddef>

#include "core/dtype.hpp"
#include "core/loop_sets.hpp"
#include "core/slice.hpp"

namespace lockstep::nn::host {

/// The mean and inverse standard deviation of a row.
struct RowMoments {
  float mean;
  float inverse;  ///< 1 / sqrt(variance + eps)
};

/// Consecutive rows of n_columns elements.
struct RowTable {
  std::size_t n_rows;
  std::size_t n_columns;
};

template <class T>
struct LayerNormTable {
  /// Also writes the moments of the rows.
  void (*normalize)(const RowTable& table, const T* x, double eps, const float* weight, const float* bias,
                    RowMoments* moments, T* out);
  /// The gradient of x. `out` may be `gradient`.
  void (*backward)(const RowTable& table, const T* x, const T* gradient, const float* weight, const RowMoments* moments,
                   T* out);
  /// Adds the gradients of weight and bias, for some of the columns and all rows in order.
  void (*add_gradients)(const RowTable& table, const core::Slice& columns, const T* x, const T* gradient,
                        const RowMoments* moments, double* of_weight, double* of_bias);
};

struct LayerNormLoops {
  LayerNormTable<float> floats;
  LayerNormTable<core::bfloat16> bfloats;

  template <class T>
  [[nodiscard]] const LayerNormTable<T>& of() const noexcept {
    if constexpr (sizeof(T) == sizeof(float))
      return floats;
    else
      return bfloats;
  }
  template <core::LoopSet set>
  [[nodiscard]] static const LayerNormLoops& version() noexcept;
};

}  // namespace lockstep::nn::host
