// Converts samples from the loader's layout to the network's: planes of numbers; or images of uint8, with crop, zero
// padding, horizontal flip and normalization.
// Invariant: padding becomes 0; each element has one thread. The value of a pixel depends on it alone and comes from a
// table, with the same bits as data/augment/lookup.
// Used by ops/input.
#pragma once

#include "data/augment/image_view.hpp"
#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

using data::ImageView;

/// Converts consecutive planes of channels to positions of padded channels. One thread converts eight channels.
template <class T>
struct TakeSamples {
  std::size_t n_samples;
  std::size_t n_positions;
  std::size_t n_channels;
  std::size_t padded_channels;
  const float* x;
  T* out;

  [[nodiscard]] std::size_t n() const { return n_samples * n_positions * (padded_channels / pack_channels); }
  void touches(const auto& tell) const {
    const std::size_t n_places = n_samples * n_positions;
    tell("take_samples", {region(x, n_places * n_channels)}, {region(out, n_places * padded_channels)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t n_packs = padded_channels / pack_channels, pack = i % n_packs, place = i / n_packs;
    const std::size_t sample = place / n_positions, position = place % n_positions;
    store_each(out, i, [&](int k) {
      const std::size_t c = pack * pack_channels + static_cast<std::size_t>(k);
      return c < n_channels ? x[(sample * n_channels + c) * n_positions + position] : 0;
    });
  }
};

/// One thread converts one pixel and writes its eight channels at once; fewer than n_indices pixels.
template <class T>
struct LookUpPixels {
  static constexpr int max_threads = 256;
  static constexpr std::size_t n_levels = 256;
  std::size_t n_images;
  int in_height, in_width;
  int n_channels;              ///< of the image, at most 8; the others become 0
  const std::uint8_t* pixels;  ///< images one after another: rows of pixels of interleaved channels
  const ImageView* views;      ///< one for each image
  const float* table;          ///< the values of the 256 levels of each channel
  int out_height, out_width;
  T* out;

  [[nodiscard]] std::size_t n() const {
    return n_images * static_cast<std::size_t>(out_height) * static_cast<std::size_t>(out_width);
  }
  LOCKSTEP_HOST_DEVICE std::size_t in_bytes() const {
    return static_cast<std::size_t>(in_height) * static_cast<std::size_t>(in_width) *
           static_cast<std::size_t>(n_channels);
  }
  LOCKSTEP_HOST_DEVICE std::size_t n_table() const { return static_cast<std::size_t>(n_channels) * n_levels; }
  [[nodiscard]] Grid grid() const {
    Grid grid = runtime::kernel::grid_of(n(), max_threads);
    grid.scratch_bytes = n_table() * sizeof(float);
    return grid;
  }
  void touches(const auto& tell) const {
    tell("look_up_pixels", {region(pixels, n_images * in_bytes()), region(views, n_images), region(table, n_table())},
         {region(out, n() * pack_channels)});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    float* const levels = team.template scratch<float>(n_table()).data();
    team.each([&](int thread) {
      for (auto i = static_cast<std::size_t>(thread); i < n_table(); i += static_cast<std::size_t>(team.n_threads()))
        levels[i] = table[i];
    });
    team.each([&](int thread) {
      const auto width = static_cast<std::uint32_t>(out_width), height = static_cast<std::uint32_t>(out_height);
      const std::size_t stride = static_cast<std::size_t>(team.n_blocks()) * static_cast<std::size_t>(team.n_threads());
      std::size_t i = static_cast<std::size_t>(team.block()) * static_cast<std::size_t>(team.n_threads());
      LOCKSTEP_NO_UNROLL
      for (i += static_cast<std::size_t>(thread); i < n_images * height * width; i += stride) {
        const std::uint32_t out_row = static_cast<std::uint32_t>(i) / width, image = out_row / height;
        const ImageView view = views[image];
        const int x = static_cast<int>(static_cast<std::uint32_t>(i) - out_row * width);
        const int row = view.top + static_cast<int>(out_row - image * height);
        const int column = view.left + (view.is_flipped != 0 ? out_width - 1 - x : x);
        const bool is_inside = row >= 0 && row < in_height && column >= 0 && column < in_width;
        const std::uint8_t* const pixel = is_inside ? pixels + image * in_bytes() + offset(row, column) : nullptr;
        Channels<T> result;
        for (int k = 0; k < pack_channels; ++k) {
          if (k >= n_channels) continue;
          const std::size_t level = pixel == nullptr ? 0 : pixel[k];
          result.set(k, levels[static_cast<std::size_t>(k) * n_levels + level]);
        }
        store_channels(out, i, result);
      }
    });
  }

 private:
  LOCKSTEP_HOST_DEVICE std::size_t offset(int row, int column) const {
    return (static_cast<std::size_t>(row) * static_cast<std::size_t>(in_width) + static_cast<std::size_t>(column)) *
           static_cast<std::size_t>(n_channels);
  }
};

}  // namespace lockstep::nn::cuda
