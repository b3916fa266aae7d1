// Turns a convolution of few channels with stride 2 into one of four times the channels with stride 1: each square of
// 2x2 pixels becomes one pixel. GPUs multiply 16 channels by matrix units, which 4 channels do not fill.
// Invariant: sums the same products; elements of the folded kernel outside the original kernel are 0.
// Used by nn/cuda.
#pragma once

#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// One dimension of a kernel of an odd size, with stride 2 and padding (size - 1) / 2; both dimensions are alike.
/// Folding ResNet-50's first convolution reduced a step of 256 images from 40.6 to 39.3 ms on two H100s.
struct Fold {
  static constexpr int most_channels = 4;
  static constexpr std::size_t n_channels = 16;  ///< of a square: four pixels, row by row, with four channels each

  int kernel;

  LOCKSTEP_HOST_DEVICE int padding() const { return (kernel - 1) / 2; }
  LOCKSTEP_HOST_DEVICE int squares_before() const { return (padding() + 1) / 2; }
  LOCKSTEP_HOST_DEVICE int n_squares() const { return squares_before() + padding() / 2 + 1; }
  /// The folded size of an image of an even size, including squares for padding.
  LOCKSTEP_HOST_DEVICE int folded_size(int size) const { return size / 2 + n_squares() - 1; }
  /// The row of the kernel at row `half` of square `square`; outside the kernel if there is none.
  LOCKSTEP_HOST_DEVICE int row_of(int square, int half) const {
    return 2 * (square - squares_before()) + half + padding();
  }
  LOCKSTEP_HOST_DEVICE bool has(int row) const { return row >= 0 && row < kernel; }
  [[nodiscard]] std::size_t weight_elements(std::size_t n_out) const {
    return n_out * static_cast<std::size_t>(n_squares() * n_squares()) * n_channels;
  }
};

/// Converts images of 8 channels, of which the first four are used, to squares; fewer than n_indices squares.
template <class T>
struct FoldImages {
  Fold fold;
  std::size_t n_images;
  int height, width;  ///< even
  const T* x;
  T* out;

  [[nodiscard]] std::size_t n() const {
    return n_images * static_cast<std::size_t>(fold.folded_size(height)) *
           static_cast<std::size_t>(fold.folded_size(width));
  }
  void touches(const auto& tell) const {
    const std::size_t n_pixels = n_images * static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
    tell("fold_images", {region(x, n_pixels * pack_channels)}, {region(out, n() * Fold::n_channels)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const auto columns = static_cast<std::uint32_t>(fold.folded_size(width));
    const auto rows = static_cast<std::uint32_t>(fold.folded_size(height));
    const std::uint32_t line = static_cast<std::uint32_t>(i) / columns, image = line / rows;
    const int top = 2 * (static_cast<int>(line - image * rows) - fold.squares_before());
    const int left = 2 * (static_cast<int>(static_cast<std::uint32_t>(i) - line * columns) - fold.squares_before());
    for (int half = 0; half < 2; ++half) {
      Channels<T> two;
      for (int side = 0; side < 2; ++side) {
        const int row = top + half, column = left + side;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        const std::size_t at = (image * static_cast<std::size_t>(height) + static_cast<std::size_t>(row)) *
                                   static_cast<std::size_t>(width) +
                               static_cast<std::size_t>(column);
        const auto pixel = load_channels(x, at);
        for (int k = 0; k < Fold::most_channels; ++k) two.set(side * Fold::most_channels + k, pixel[k]);
      }
      store_channels(out, 2 * i + static_cast<std::size_t>(half), two);
    }
  }
};

/// Converts weights {n_out, kernel, kernel, 8} to {n_out, squares, squares, 16}.
template <class T>
struct FoldWeight {
  Fold fold;
  std::size_t n_out;
  const T* weight;
  T* out;

  [[nodiscard]] std::size_t n() const { return fold.weight_elements(n_out) / pack_channels; }
  void touches(const auto& tell) const {
    const auto n_taps = static_cast<std::size_t>(fold.kernel * fold.kernel);
    tell("fold_weight", {region(weight, n_out * n_taps * pack_channels)}, {region(out, n() * pack_channels)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const auto index = static_cast<std::uint32_t>(i), n = static_cast<std::uint32_t>(fold.n_squares());
    const int half = static_cast<int>(index % 2);
    const int column = static_cast<int>(index / 2 % n), row = static_cast<int>(index / 2 / n % n);
    const std::size_t of_output = index / 2 / n / n * static_cast<std::size_t>(fold.kernel * fold.kernel);
    const int y = fold.row_of(row, half);
    Channels<T> two;
    for (int side = 0; side < 2; ++side) {
      const int x = fold.row_of(column, side);
      if (!fold.has(y) || !fold.has(x)) continue;
      const auto taps = load_channels(weight, of_output + static_cast<std::size_t>(y * fold.kernel + x));
      for (int k = 0; k < Fold::most_channels; ++k) two.set(side * Fold::most_channels + k, taps[k]);
    }
    store_channels(out, i, two);
  }
};

/// As KeepGradient, for the weight that FoldWeight folds.
template <class T>
struct KeepFoldedGradient {
  Fold fold;
  std::size_t n_out;
  const T* gradient;  ///< folded
  bool adds;          ///< to the present values
  float* out;         ///< {n_out, kernel, kernel, 8}

  [[nodiscard]] std::size_t n() const { return n_out * static_cast<std::size_t>(fold.kernel * fold.kernel); }
  void touches(const auto& tell) const {
    const std::size_t n_kept = n() * pack_channels;
    tell("keep_folded_gradient", {region(gradient, fold.weight_elements(n_out)), region(out, adds ? n_kept : 0)},
         {region(out, n_kept)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const auto index = static_cast<std::uint32_t>(i), size = static_cast<std::uint32_t>(fold.kernel);
    // Counted from the first row of the first square, which is never negative.
    const int first = 2 * fold.squares_before() - fold.padding();
    const int x = static_cast<int>(index % size) + first, y = static_cast<int>(index / size % size) + first;
    const auto n = static_cast<std::size_t>(fold.n_squares());
    const std::size_t square =
        (index / size / size * n + static_cast<std::size_t>(y / 2)) * n + static_cast<std::size_t>(x / 2);
    const auto two = load_channels(gradient, 2 * square + static_cast<std::size_t>(y % 2));
    auto kept = load_channels_or_0(adds ? out : nullptr, i);
    for (int k = 0; k < Fold::most_channels; ++k)
      kept.set(k, kept[k] + (x % 2 == 0 ? two[k] : two[Fold::most_channels + k]));
    store_channels(out, i, kept);
  }
};

}  // namespace lockstep::nn::cuda
