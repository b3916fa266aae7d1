// The loops for one instruction set.
// Invariant: as layer_norm_loops.hpp; nothing here but version() has external linkage.
// Compiled once for each instruction set (lockstep_loop_sources).
#include "nn/ops/layer_norm/layer_norm_loops.hpp"

#include <type_traits>

#include "nn/host/loop_elements.hpp"

namespace lockstep::nn::host {
namespace {

constexpr std::size_t width = 16;  ///< elements that are added side by side, whatever the instruction set

/// The sum of f(i) for i < n: that of every 16th element, then of halves of these sums.
template <class F>
[[gnu::always_inline]] inline float add_up(std::size_t n, const F& f) {
  float sums[width] = {};
  std::size_t i = 0;
  for (; i + width <= n; i += width) {
#pragma omp simd
    for (std::size_t k = 0; k < width; ++k) sums[k] += f(i + k);
  }
  for (std::size_t k = 0; i + k < n; ++k) sums[k] += f(i + k);
  for (std::size_t half = width / 2; half > 0; half /= 2)
    for (std::size_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

template <class T>
void normalize(const RowTable& table, const T* x, double eps, const float* weight, const float* bias,
               RowMoments* moments, T* out) {
  const std::size_t n = table.n_columns;
  for (std::size_t row = 0; row < table.n_rows; ++row, x += n, out += n) {
    const float mean = add_up(n, [&](std::size_t i) { return load(x[i]); }) / static_cast<float>(n);
    const float squares = add_up(n, [&](std::size_t i) {
      const float deviation = load(x[i]) - mean;
      return deviation * deviation;
    });
    const double variance = static_cast<double>(squares / static_cast<float>(n));
    const auto inverse = static_cast<float>(1 / __builtin_sqrt(variance + eps));
    moments[row] = {mean, inverse};
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) store((load(x[i]) - mean) * inverse * weight[i] + bias[i], out[i]);
  }
}

template <class T>
void backward(const RowTable& table, const T* x, const T* gradient, const float* weight, const RowMoments* moments,
              T* out) {
  const std::size_t n = table.n_columns;
  for (std::size_t row = 0; row < table.n_rows; ++row, x += n, gradient += n, out += n) {
    const auto [mean, inverse] = moments[row];
    const auto passed = [&](std::size_t i) { return load(gradient[i]) * weight[i]; };
    const auto normalized = [&, center = mean, factor = inverse](std::size_t i) {
      return (load(x[i]) - center) * factor;
    };
    const float sum = add_up(n, passed) / static_cast<float>(n);
    const float product = add_up(n, [&](std::size_t i) { return passed(i) * normalized(i); }) / static_cast<float>(n);
    const float scale = inverse;
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) store((passed(i) - sum - normalized(i) * product) * scale, out[i]);
  }
}

/// Adds up n_columns <= width columns from `column` on, over the rows from `row` to `end`.
template <class T, class N>
[[gnu::always_inline]] inline void add_columns(const RowTable& table, std::size_t row, std::size_t end,
                                               std::size_t column, N n_columns, const T* x, const T* gradient,
                                               const RowMoments* moments, double* of_weight, double* of_bias) {
  double products[width] = {}, sums[width] = {};
  for (std::size_t k = 0; k < n_columns; ++k) {
    products[k] = of_weight[column + k];
    sums[k] = of_bias[column + k];
  }
  for (; row < end; ++row) {
    const T* const at = x + row * table.n_columns + column;
    const T* const passed = gradient + row * table.n_columns + column;
    const float mean = moments[row].mean, inverse = moments[row].inverse;
#pragma omp simd
    for (std::size_t k = 0; k < n_columns; ++k) {
      products[k] += static_cast<double>(load(passed[k]) * ((load(at[k]) - mean) * inverse));
      sums[k] += static_cast<double>(load(passed[k]));
    }
  }
  for (std::size_t k = 0; k < n_columns; ++k) {
    of_weight[column + k] = products[k];
    of_bias[column + k] = sums[k];
  }
}

template <class T>
void add_gradients(const RowTable& table, const core::Slice& columns, const T* x, const T* gradient,
                   const RowMoments* moments, double* of_weight, double* of_bias) {
  const std::size_t most_rows = 4096 / table.n_columns + 1;  // whose elements a first-level cache holds
  const std::size_t last = columns.offset + columns.count;
  for (std::size_t row = 0; row < table.n_rows; row += most_rows) {
    const std::size_t end = table.n_rows - row < most_rows ? table.n_rows : row + most_rows;
    std::size_t column = columns.offset;
    for (; column + width <= last; column += width)
      add_columns(table, row, end, column, std::integral_constant<std::size_t, width>{}, x, gradient, moments,
                  of_weight, of_bias);
    if (column < last) add_columns(table, row, end, column, last - column, x, gradient, moments, of_weight, of_bias);
  }
}

template <class T>
constexpr LayerNormTable<T> table_of{normalize<T>, backward<T>, add_gradients<T>};

constexpr LayerNormLoops these_loops{table_of<float>, table_of<core::bfloat16>};

}  // namespace

template <>
const LayerNormLoops& LayerNormLoops::version<core::this_loop_set>() noexcept {
  return these_loops;
}

}  // namespace lockstep::nn::host
