// The element-wise loops on the host, one set per instruction set, chosen at run time.
// Invariant: every set computes the same bits; padding that is 0 stays 0; outputs may be inputs, no other overlap.
// Used by the layers of nn/ops, and by nn/host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/dtype.hpp"
#include "core/loop_sets.hpp"

namespace lockstep::nn::host {

/// The key of one sample's random numbers for dropout: Philox4x32-10, element e is word e % 4 of counter e / 4.
struct MaskKey {
  std::array<std::uint32_t, 2> key{};
  std::uint32_t node = 0;
  std::uint64_t sample = 0;
  std::uint32_t threshold = 0;  ///< words below it drop their element
};

/// For rows of channels: (x - mean) * factor + shift, or `least` where that is less. Pointers are arrays of channels.
struct Normalization {
  const float* mean;
  const float* factor;
  const float* shift;
  float least;  ///< 0: ReLU is included; -infinity: it is not
};

/// Batch normalization's gradient subtracts offset + (x - mean) * slope from that of its output.
struct Correction {
  const float* offset;
  const float* slope;
};

/// Loops compute in float32 and round each element once.
template <class T>
struct ElementLoops {
  void (*relu)(const T* x, T* out, std::size_t n);
  /// 0 where `y` <= 0, else a, or a + b unless b is null.
  void (*relu_backward)(const T* y, const T* a, const T* b, T* out, std::size_t n);
  void (*add)(const T* a, const T* b, T* out, std::size_t n);
  void (*add_relu)(const T* a, const T* b, T* out, std::size_t n);
  /// x * factor where the mask is 1, 0 where it is 0.
  void (*mask)(const T* x, const std::uint8_t* mask, float factor, T* out, std::size_t n);
  /// sum += x.
  void (*add_to)(float* sum, const T* x, std::size_t n);
  /// out[c] = sum of x[r * n_columns + c] over r, added up in double.
  void (*sum_rows)(const T* x, std::size_t n_rows, std::size_t n_columns, float* out);
  void (*from_floats)(const float* x, T* out, std::size_t n);
  void (*to_floats)(const T* x, float* out, std::size_t n);

  // The next loops work on n_rows consecutive rows of n_columns channels.
  /// sums[c] += x, in double.
  void (*add_rows)(const T* x, std::size_t n_rows, std::size_t n_columns, double* sums);
  /// sums[c] += (x - mean[c])^2, in double.
  void (*add_squares)(const T* x, std::size_t n_rows, std::size_t n_columns, const double* mean, double* sums);
  void (*normalize)(const T* x, std::size_t n_rows, std::size_t n_columns, const Normalization& by, T* out);
  /// sums[c] += g and products[c] += g * (x - mean), added up in double. g: the gradient, or 0 where `by` gives its
  /// least.
  void (*add_gradients)(const T* x, const T* gradient, std::size_t n_rows, std::size_t n_columns,
                        const Normalization& by, double* sums, double* products);
  /// (g - correction) * factor, with the same g.
  void (*normalize_backward)(const T* x, const T* gradient, std::size_t n_rows, std::size_t n_columns,
                             const Normalization& by, const Correction& correction, T* out);
};

struct Loops {
  ElementLoops<float> floats;
  ElementLoops<core::bfloat16> bfloats;
  template <class T>
  [[nodiscard]] const ElementLoops<T>& of() const noexcept {
    if constexpr (sizeof(T) == sizeof(float))
      return floats;
    else
      return bfloats;
  }
  template <core::LoopSet set>
  [[nodiscard]] static const Loops& version() noexcept;

  void (*scale)(const float* x, float factor, float* out, std::size_t n);
  /// 1 for kept elements; writes whole groups of four, so `n` is rounded up.
  void (*draw_mask)(const MaskKey& key, std::uint8_t* mask, std::size_t n);
  /// Transposes each of n_blocks consecutive 16x16 blocks. No overlap.
  void (*transpose_blocks)(const float* from, float* to, std::size_t n_blocks);
  /// The same, with elements of two columns side by side: out[c / 2][r][c % 2] = block[r][c].
  void (*transpose_pairs)(const float* from, core::bfloat16* to, std::size_t n_blocks);
  /// Puts elements of two rows of 16 side by side: out[r / 2][c][r % 2] = from[r][c]; an odd row's neighbour is 0.
  void (*pair_rows)(const float* from, core::bfloat16* to, std::size_t n_rows);
};

[[nodiscard]] inline const Loops& loops() noexcept { return *core::available_loops<Loops>().back(); }

}  // namespace lockstep::nn::host
