// Copies columns from one array of rows to another: concatenates features, and splits their gradients.
// Invariant: copies keep all bits; one thread copies each element.
// Used by device.cpp.
#pragma once

#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// Copies columns [from_first, from_first + n_columns) of each row to columns from to_first on, and sets the n_zeros
/// columns after them to 0, as padding. One such copy per part concatenates or splits features.
template <class T>
struct CopyColumns {
  std::size_t n_rows;
  std::size_t n_columns;
  std::size_t n_zeros;
  const T* from;
  std::size_t from_width;  ///< elements of a row
  std::size_t from_first;
  T* to;
  std::size_t to_width;
  std::size_t to_first;

  /// Whether packs of both arrays coincide; otherwise elements are copied one by one.
  LOCKSTEP_HOST_DEVICE bool is_packed() const {
    return (n_columns | n_zeros | from_width | from_first | to_width | to_first) % pack_channels == 0;
  }
  [[nodiscard]] std::size_t n() const { return n_rows * (n_columns + n_zeros) / (is_packed() ? pack_channels : 1); }
  void touches(const auto& tell) const {
    tell("copy_columns", {region(from, n_rows * from_width)}, {region(to, n_rows * to_width)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t step = is_packed() ? pack_channels : 1, width = (n_columns + n_zeros) / step;
    const std::size_t row = i / width, column = i % width * step;
    const std::size_t source = row * from_width + from_first + column, target = row * to_width + to_first + column;
    if (step == 1) {
      to[target] = column < n_columns ? from[source] : round_to<T>(0);
    } else {
      store_channels(to, target / step,
                     load_channels_or_0(column < n_columns ? from : nullptr, source / pack_channels));
    }
  }
};

}  // namespace lockstep::nn::cuda
