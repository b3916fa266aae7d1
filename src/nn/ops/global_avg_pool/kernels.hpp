// Averages over whole images, and their gradients.
// Invariant: one thread computes each element and adds up in a fixed order. Averages have the bits of the host's.
// Used by device.cpp.
#pragma once

#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// Computes the average of each channel over the n_positions of each image.
template <class T>
struct Averages {
  std::size_t n_images;
  std::size_t n_positions;
  std::size_t n_channels;
  const T* x;
  T* out;

  [[nodiscard]] std::size_t n() const { return n_images * n_channels / pack_channels; }
  void touches(const auto& tell) const {
    const std::size_t n_out = n_images * n_channels;
    tell("averages", {region(x, n_out * n_positions)}, {region(out, n_out)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t n_packs = n_channels / pack_channels;
    const std::size_t first = i / n_packs * n_positions * n_packs + i % n_packs;
    double sums[pack_channels] = {};
    LOCKSTEP_NO_UNROLL
    for (std::size_t position = 0; position < n_positions; ++position) {
      const auto values = load_channels(x, first + position * n_packs);
      for (int k = 0; k < pack_channels; ++k) sums[k] += static_cast<double>(values[k]);
    }
    const float factor = 1 / static_cast<float>(n_positions);
    store_each(out, i, [&](int k) { return static_cast<float>(sums[k]) * factor; });
  }
};

template <class T>
struct AveragesBackward {
  std::size_t n_images;
  std::size_t n_positions;
  std::size_t n_channels;
  const T* gradient;
  T* out;

  [[nodiscard]] std::size_t n() const { return n_images * n_positions * n_channels / pack_channels; }
  void touches(const auto& tell) const {
    const std::size_t n_in = n_images * n_channels;
    tell("averages_backward", {region(gradient, n_in)}, {region(out, n_in * n_positions)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t n_packs = n_channels / pack_channels;
    const auto values = load_channels(gradient, i / n_packs / n_positions * n_packs + i % n_packs);
    const float factor = 1 / static_cast<float>(n_positions);
    store_each(out, i, [&](int k) { return values[k] * factor; });
  }
};

}  // namespace lockstep::nn::cuda
