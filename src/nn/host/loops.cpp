// The loops for one instruction set.
// Invariant: as loops.hpp; nothing here but version() has external linkage.
// Compiled once for each instruction set (lockstep_loop_sources).
#include "nn/host/loops.hpp"

#include <cstring>
#include <utility>

#include "nn/host/loop_elements.hpp"

namespace lockstep::nn::host {
namespace {

using core::bfloat16;

/// Returns `x` or 0. With AVX2, `?` may become a jump per element: dropout's mask for 590,000 elements on a Zen 4 took
/// 1.5 instead of 0.13 ms.
[[gnu::always_inline]] inline float if_true(bool condition, float x) {
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, x) & (0u - static_cast<std::uint32_t>(condition)));
}

// NaN stays NaN: a comparison with 0 must not hide it.
template <class T>
void relu(const T* x, T* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) store(load(x[i]) <= 0 ? 0.0f : load(x[i]), out[i]);
}

template <class T>
void relu_backward(const T* y, const T* a, const T* b, T* out, std::size_t n) {
  if (b == nullptr) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) store(if_true(!(load(y[i]) <= 0), load(a[i])), out[i]);
  } else {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) store(if_true(!(load(y[i]) <= 0), load(a[i]) + load(b[i])), out[i]);
  }
}

template <class T>
void add(const T* a, const T* b, T* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) store(load(a[i]) + load(b[i]), out[i]);
}

template <class T>
void add_relu(const T* a, const T* b, T* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) {
    const float sum = load(a[i]) + load(b[i]);
    store(sum <= 0 ? 0.0f : sum, out[i]);
  }
}

template <class T>
void mask(const T* x, const std::uint8_t* kept, float factor, T* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) store(if_true(kept[i] != 0, load(x[i]) * factor), out[i]);
}

template <class T>
void add_to(float* sum, const T* x, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) sum[i] += load(x[i]);
}

template <class T>
void sum_rows(const T* x, std::size_t n_rows, std::size_t n_columns, float* out) {
  constexpr std::size_t most = 64;
  for (std::size_t first = 0; first < n_columns; first += most) {
    const std::size_t n = n_columns - first < most ? n_columns - first : most;
    double sums[most] = {};
    for (std::size_t r = 0; r < n_rows; ++r) {
      const T* const row = x + r * n_columns + first;
#pragma omp simd
      for (std::size_t c = 0; c < n; ++c) sums[c] += static_cast<double>(load(row[c]));
    }
    for (std::size_t c = 0; c < n; ++c) out[first + c] = static_cast<float>(sums[c]);
  }
}

template <class T>
void from_floats(const float* x, T* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) store(x[i], out[i]);
}

template <class T>
void to_floats(const T* x, float* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = load(x[i]);
}

constexpr std::size_t most_columns = 16;  ///< whose sums fit into registers

/// Calls f(row, n_rows, column, n_columns) for all pieces of a table: most_columns wide, as a constant, and with as
/// many rows of the whole table as a first-level cache holds.
template <class F>
[[gnu::always_inline]] inline void for_pieces(std::size_t n_rows, std::size_t n_columns, const F& f) {
  constexpr std::size_t most_elements = 4096;
  const std::size_t most_rows = most_elements / n_columns + 1;
  for (std::size_t row = 0; row < n_rows; row += most_rows) {
    const std::size_t n_here = n_rows - row < most_rows ? n_rows - row : most_rows;
    std::size_t column = 0;
    for (; column + most_columns <= n_columns; column += most_columns)
      f(row, n_here, column, std::integral_constant<std::size_t, most_columns>{});
    if (column < n_columns) f(row, n_here, column, n_columns - column);
  }
}

template <class T>
void add_rows(const T* x, std::size_t n_rows, std::size_t n_columns, double* sums) {
  for_pieces(n_rows, n_columns, [&](std::size_t row, std::size_t n, std::size_t column, auto width) {
    double here[most_columns] = {};
    const T* at = x + row * n_columns + column;
    for (std::size_t r = 0; r < n; ++r, at += n_columns) {
#pragma omp simd
      for (std::size_t c = 0; c < width; ++c) here[c] += static_cast<double>(load(at[c]));
    }
    for (std::size_t c = 0; c < width; ++c) sums[column + c] += here[c];
  });
}

template <class T>
void add_squares(const T* x, std::size_t n_rows, std::size_t n_columns, const double* mean, double* sums) {
  for_pieces(n_rows, n_columns, [&](std::size_t row, std::size_t n, std::size_t column, auto width) {
    double here[most_columns] = {};
    const double* const center = mean + column;
    const T* at = x + row * n_columns + column;
    for (std::size_t r = 0; r < n; ++r, at += n_columns) {
#pragma omp simd
      for (std::size_t c = 0; c < width; ++c) {
        const double deviation = static_cast<double>(load(at[c])) - center[c];
        here[c] += deviation * deviation;
      }
    }
    for (std::size_t c = 0; c < width; ++c) sums[column + c] += here[c];
  });
}

/// The normalized value of one channel.
[[gnu::always_inline]] inline float normalized(float deviation, const Normalization& by, std::size_t c) {
  return deviation * by.factor[c] + by.shift[c];
}

/// The part of a gradient that reaches the value before ReLU.
[[gnu::always_inline]] inline float passed(float gradient, float deviation, const Normalization& by, std::size_t c) {
  return normalized(deviation, by, c) <= by.least ? 0.0f : gradient;
}

template <class T>
void normalize(const T* x, std::size_t n_rows, std::size_t n_columns, const Normalization& by, T* out) {
  for_pieces(n_rows, n_columns, [&](std::size_t row, std::size_t n, std::size_t column, auto width) {
    for (std::size_t r = row; r < row + n; ++r) {
      const T* const from = x + r * n_columns;
      T* const to = out + r * n_columns;
#pragma omp simd
      for (std::size_t c = column; c < column + width; ++c) {
        const float y = normalized(load(from[c]) - by.mean[c], by, c);
        store(y <= by.least ? by.least : y, to[c]);
      }
    }
  });
}

template <class T>
void add_gradients(const T* x, const T* gradient, std::size_t n_rows, std::size_t n_columns, const Normalization& by,
                   double* sums, double* products) {
  for_pieces(n_rows, n_columns, [&](std::size_t row, std::size_t n, std::size_t column, auto width) {
    double here[most_columns] = {}, products_here[most_columns] = {};
    for (std::size_t r = row; r < row + n; ++r) {
      const std::size_t at = r * n_columns + column;
      float deviation[most_columns] = {}, g[most_columns] = {};
#pragma omp simd
      for (std::size_t c = 0; c < width; ++c) deviation[c] = load(x[at + c]) - by.mean[column + c];
#pragma omp simd
      for (std::size_t c = 0; c < width; ++c) g[c] = passed(load(gradient[at + c]), deviation[c], by, column + c);
      // In two halves, because a vector holds half as many doubles.
      for (std::size_t half = 0; half < most_columns; half += most_columns / 2) {
#pragma omp simd
        for (std::size_t c = half; c < half + most_columns / 2; ++c) here[c] += static_cast<double>(g[c]);
#pragma omp simd
        for (std::size_t c = half; c < half + most_columns / 2; ++c)
          products_here[c] += static_cast<double>(g[c] * deviation[c]);
      }
    }
    for (std::size_t c = 0; c < width; ++c) {
      sums[column + c] += here[c];
      products[column + c] += products_here[c];
    }
  });
}

template <class T>
void normalize_backward(const T* x, const T* gradient, std::size_t n_rows, std::size_t n_columns,
                        const Normalization& by, const Correction& correction, T* out) {
  for_pieces(n_rows, n_columns, [&](std::size_t row, std::size_t n, std::size_t column, auto width) {
    for (std::size_t r = row; r < row + n; ++r) {
      const std::size_t at = r * n_columns;
#pragma omp simd
      for (std::size_t c = column; c < column + width; ++c) {
        const float deviation = load(x[at + c]) - by.mean[c];
        const float g = passed(load(gradient[at + c]), deviation, by, c);
        store((g - correction.offset[c] - deviation * correction.slope[c]) * by.factor[c], out[at + c]);
      }
    }
  });
}

void scale(const float* x, float factor, float* out, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i] * factor;
}

constexpr std::size_t n_lanes = 16;
using Lanes = std::uint32_t[n_lanes];

/// Computes ten rounds of Philox on one counter per lane.
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

using Row [[gnu::vector_size(64)]] = float;

/// Exchanges the off-diagonal pieces of size `h` of two rows that are `h` apart.
template <int h, class R, int... c>
[[gnu::always_inline]] inline void exchange(R& a, R& b, std::integer_sequence<int, c...>) {
  const R first = __builtin_shufflevector(a, b, ((c & h) == 0 ? c : 16 + c - h)...);
  b = __builtin_shufflevector(a, b, ((c & h) == 0 ? c + h : 16 + c)...);
  a = first;
}

template <int h, class R, int n>
[[gnu::always_inline]] inline void exchange_rows(R (&rows)[n]) {
#pragma GCC unroll 16
  for (int r = 0; r < n; ++r)
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

using Words [[gnu::vector_size(64)]] = std::uint32_t;

/// Applies rounded() to a row of 16.
[[gnu::always_inline]] inline void round_row(const float* row, Words& words) {
  std::memcpy(&words, row, sizeof(words));
  const Words to_even = words + 0x7fff + ((words >> 16) & 1), quiet = words | 0x0040'0000;
  const auto is_nan = (words & 0x7fff'ffff) > 0x7f80'0000;
  words = is_nan ? quiet : to_even;
}

/// Joins the upper halves of both: that of `low` becomes the lower half, that of `high` the upper.
[[gnu::always_inline]] inline void put_side_by_side(Words& low, const Words& high) {
  low = (low >> 16) | (high & 0xffff'0000);
}

void transpose_pairs(const float* from, bfloat16* to, std::size_t n_blocks) {
  for (std::size_t block = 0; block < n_blocks; ++block) {
    Words pairs[8];  // row r, then row r + 8
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      Words a, b;
      round_row(from + block * 256 + r * 16, a);
      round_row(from + block * 256 + (r + 8) * 16, b);
      pairs[r] = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
      put_side_by_side(pairs[r],
                       __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31));
    }
    exchange_rows<4>(pairs);
    exchange_rows<2>(pairs);
    exchange_rows<1>(pairs);
    std::memcpy(static_cast<void*>(to + block * 256), pairs, sizeof(pairs));
  }
}

void pair_rows(const float* from, bfloat16* to, std::size_t n_rows) {
  for (std::size_t r = 0; r < n_rows; r += 2) {
    Words pairs, second{};
    round_row(from + r * 16, pairs);
    if (r + 1 < n_rows) round_row(from + (r + 1) * 16, second);
    put_side_by_side(pairs, second);
    std::memcpy(static_cast<void*>(to + r * 16), &pairs, sizeof(pairs));
  }
}

template <class T>
constexpr ElementLoops<T> element_loops{
    relu<T>,        relu_backward<T>, add<T>,           add_relu<T>,          mask<T>,
    add_to<T>,      sum_rows<T>,      from_floats<T>,   to_floats<T>,         add_rows<T>,
    add_squares<T>, normalize<T>,     add_gradients<T>, normalize_backward<T>};

constexpr Loops these_loops{element_loops<float>, element_loops<bfloat16>, scale,    draw_mask,
                            transpose_blocks,     transpose_pairs,         pair_rows};

}  // namespace

template <>
const Loops& Loops::version<core::this_loop_set>() noexcept {
  return these_loops;
}

}  // namespace lockstep::nn::host
