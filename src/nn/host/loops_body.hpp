// The loops themselves, for one instruction set: that of the file which includes this.
// Invariant: as loops.hpp; nothing here has external linkage, so that no set's code runs in place of another's.
// Used by loops_{plain,avx2,avx512}.cpp, each compiled with its own flags (lockstep_loop_sources).
#pragma once

#include <cstring>
#include <utility>

#include "nn/host/loops.hpp"

namespace lockstep::nn::host {
namespace {

// NaN stays NaN: a comparison with 0 must not hide it.
void relu(const float* x, float* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i] <= 0 ? 0.0f : x[i];
}

void relu_backward(const float* y, const float* a, const float* b, float* out, std::size_t n) {
  if (b == nullptr) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) out[i] = y[i] <= 0 ? 0.0f : a[i];
  } else {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) {
      const float sum = a[i] + b[i];
      out[i] = y[i] <= 0 ? 0.0f : sum;
    }
  }
}

void add(const float* a, const float* b, float* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void add_relu(const float* a, const float* b, float* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) {
    const float sum = a[i] + b[i];
    out[i] = sum <= 0 ? 0.0f : sum;
  }
}

void scale(const float* x, float factor, float* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i] * factor;
}

void mask(const float* x, const std::uint8_t* kept, float factor, float* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = kept[i] != 0 ? x[i] * factor : 0.0f;
}

constexpr std::size_t n_lanes = 16;
using Lanes = std::uint32_t[n_lanes];

/// Ten rounds of Philox on as many counters as there are lanes.
void philox_lanes(std::uint32_t key_0, std::uint32_t key_1, Lanes& c0, Lanes& c1, Lanes& c2, Lanes& c3) {
  constexpr std::uint64_t multiplier_0 = 0xd251'1f53, multiplier_1 = 0xcd9e'8d57;
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (std::size_t i = 0; i < n_lanes; ++i) {
      const std::uint64_t product_0 = multiplier_0 * c0[i];
      const std::uint64_t product_1 = multiplier_1 * c2[i];
      c0[i] = static_cast<std::uint32_t>(product_1 >> 32) ^ c1[i] ^ key_0;
      c2[i] = static_cast<std::uint32_t>(product_0 >> 32) ^ c3[i] ^ key_1;
      c1[i] = static_cast<std::uint32_t>(product_1);
      c3[i] = static_cast<std::uint32_t>(product_0);
    }
    key_0 += 0x9e37'79b9;
    key_1 += 0xbb67'ae85;
  }
}

void draw_mask(const MaskKey& key, std::uint8_t* kept, std::size_t n) {
  const std::size_t n_counters = (n + 3) / 4;
  for (std::size_t first = 0; first < n_counters; first += n_lanes) {
    Lanes c0, c1, c2, c3;
    for (std::size_t i = 0; i < n_lanes; ++i) {
      c0[i] = static_cast<std::uint32_t>(first + i);
      c1[i] = key.node;
      c2[i] = static_cast<std::uint32_t>(key.sample);
      c3[i] = static_cast<std::uint32_t>(key.sample >> 32);
    }
    philox_lanes(key.key[0], key.key[1], c0, c1, c2, c3);
    const std::size_t n_here = n_counters - first < n_lanes ? n_counters - first : n_lanes;
    for (std::size_t i = 0; i < n_here; ++i) {
      std::uint8_t* const four = kept + 4 * (first + i);
      four[0] = c0[i] >= key.threshold;
      four[1] = c1[i] >= key.threshold;
      four[2] = c2[i] >= key.threshold;
      four[3] = c3[i] >= key.threshold;
    }
  }
}

void sum_rows(const float* x, std::size_t n_rows, std::size_t n_columns, float* out) {
  for (std::size_t c = 0; c < n_columns; ++c) out[c] = 0;
  for (std::size_t r = 0; r < n_rows; ++r) add(out, x + r * n_columns, out, n_columns);
}

using Row [[gnu::vector_size(64)]] = float;

/// Exchanges what lies beside the diagonal of two rows that are `h` apart, in pieces of `h`.
template <int h, int... c>
[[gnu::always_inline]] inline void exchange(Row& a, Row& b, std::integer_sequence<int, c...>) {
  const Row first = __builtin_shufflevector(a, b, ((c & h) == 0 ? c : 16 + c - h)...);
  b = __builtin_shufflevector(a, b, ((c & h) == 0 ? c + h : 16 + c)...);
  a = first;
}

template <int h>
[[gnu::always_inline]] inline void exchange_rows(Row (&rows)[16]) {
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r)
    if ((r & h) == 0) exchange<h>(rows[r], rows[r + h], std::make_integer_sequence<int, 16>{});
}

void transpose_blocks(const float* from, float* to, std::size_t n_blocks) {
  for (std::size_t block = 0; block < n_blocks; ++block) {
    Row rows[16];
    std::memcpy(rows, from + block * 256, sizeof(rows));
    exchange_rows<8>(rows);
    exchange_rows<4>(rows);
    exchange_rows<2>(rows);
    exchange_rows<1>(rows);
    std::memcpy(to + block * 256, rows, sizeof(rows));
  }
}

constexpr Loops these_loops{relu, relu_backward, add, add_relu, scale, mask, draw_mask, sum_rows, transpose_blocks};

}  // namespace
}  // namespace lockstep::nn::host
