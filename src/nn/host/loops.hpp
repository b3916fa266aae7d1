// The element-wise loops on the host, one set per instruction set, chosen at run time.
// Invariant: every set computes the same bits; padding that is 0 stays 0; outputs may be inputs, no other overlap.
// Used by the layers of nn/host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::nn::host {

/// Of the random numbers of one sample's dropout: Philox4x32-10, element e is word e % 4 of counter e / 4.
struct MaskKey {
  std::array<std::uint32_t, 2> key{};
  std::uint32_t node = 0;
  std::uint64_t sample = 0;
  std::uint32_t threshold = 0;  ///< words below it drop their element
};

struct Loops {
  void (*relu)(const float* x, float* out, std::size_t n);
  /// 0 where `y` <= 0, else a, or a + b unless b is null.
  void (*relu_backward)(const float* y, const float* a, const float* b, float* out, std::size_t n);
  void (*add)(const float* a, const float* b, float* out, std::size_t n);
  void (*add_relu)(const float* a, const float* b, float* out, std::size_t n);
  void (*scale)(const float* x, float factor, float* out, std::size_t n);
  /// x * factor where the mask is 1, 0 where it is 0.
  void (*mask)(const float* x, const std::uint8_t* mask, float factor, float* out, std::size_t n);
  /// 1 for kept elements; writes whole fours, `n` rounded up.
  void (*draw_mask)(const MaskKey& key, std::uint8_t* mask, std::size_t n);
  /// out[c] = sum of x[r * n_columns + c] over r.
  void (*sum_rows)(const float* x, std::size_t n_rows, std::size_t n_columns, float* out);
  /// Of each of n_blocks 16x16 blocks, one after the other. No overlap.
  void (*transpose_blocks)(const float* from, float* to, std::size_t n_blocks);
};

[[nodiscard]] const Loops& loops() noexcept;

extern const Loops plain_loops;
extern const Loops avx2_loops;    ///< x86 only
extern const Loops avx512_loops;  ///< x86 only

}  // namespace lockstep::nn::host
