// Maxima over square windows, with the place of each; their gradients gather.
// Invariant: one thread computes each element and adds up in a fixed order.
// Used by device.cpp.
#pragma once

#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// The sizes of images of n_channels and of their windows: fewer than n_indices packs of both. Padding is never the
/// maximum: windows end at the edges of the image, and each contains a pixel.
struct PoolSizes {
  std::size_t n_images;
  int height, width;
  std::size_t n_channels;
  int kernel;  ///< at most 11, so that a place in it fits int8
  int stride;
  int padding;
  int out_height, out_width;

  LOCKSTEP_HOST_DEVICE std::size_t n_packs() const { return n_channels / pack_channels; }
  LOCKSTEP_HOST_DEVICE std::size_t n_in() const {
    return n_images * static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * n_packs();
  }
  LOCKSTEP_HOST_DEVICE std::size_t n_out() const {
    return n_images * static_cast<std::size_t>(out_height) * static_cast<std::size_t>(out_width) * n_packs();
  }
};

/// The place of a pack of channels in images of a given height and width; fewer than n_indices packs.
struct PoolPlace {
  LOCKSTEP_HOST_DEVICE PoolPlace(std::size_t i, std::size_t n_packs, int height, int width) {
    const auto index = static_cast<std::uint32_t>(i), packs = static_cast<std::uint32_t>(n_packs);
    const std::uint32_t position = index / packs, row = position / static_cast<std::uint32_t>(width);
    pack = index - position * packs;
    x = static_cast<int>(position - row * static_cast<std::uint32_t>(width));
    image = row / static_cast<std::uint32_t>(height);
    y = static_cast<int>(row - image * static_cast<std::uint32_t>(height));
  }
  /// The pack's index at another place of its image, in images of a given height and width.
  LOCKSTEP_HOST_DEVICE std::size_t at(int row, int column, std::size_t n_packs, int height, int width) const {
    const std::uint32_t rows = image * static_cast<std::uint32_t>(height) + static_cast<std::uint32_t>(row);
    const std::uint32_t position = rows * static_cast<std::uint32_t>(width) + static_cast<std::uint32_t>(column);
    return position * static_cast<std::uint32_t>(n_packs) + pack;
  }

  std::uint32_t pack, image;
  int x, y;
};

template <class T>
struct PoolMaxima {
  static constexpr int n_at_once = 3;  ///< of a row, loaded together
  PoolSizes sizes;
  const T* x;
  T* out;
  std::int8_t* places;  ///< of the first maximum in the window, row by row, or of a NaN; may be null

  [[nodiscard]] std::size_t n() const { return sizes.n_out(); }
  void touches(const auto& tell) const {
    const std::size_t n_out = sizes.n_out() * pack_channels;
    tell("pool_maxima", {region(x, sizes.n_in() * pack_channels)},
         {region(out, n_out), region(places, places == nullptr ? 0 : n_out)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const PoolPlace place{i, sizes.n_packs(), sizes.out_height, sizes.out_width};
    const int top = place.y * sizes.stride - sizes.padding, left = place.x * sizes.stride - sizes.padding;
    float largest[pack_channels];
    Pack<std::int8_t, pack_channels> chosen;
    for (int k = 0; k < pack_channels; ++k) {
      largest[k] = -std::numeric_limits<float>::infinity();
      chosen[k] = -1;
    }
    LOCKSTEP_NO_UNROLL
    for (int row = 0; row < sizes.kernel; ++row) {
      if (top + row < 0 || top + row >= sizes.height) continue;
      LOCKSTEP_NO_UNROLL
      for (int first = 0; first < sizes.kernel; first += n_at_once) {
        Channels<T> values[n_at_once];
        bool is_there[n_at_once];
        LOCKSTEP_UNROLL
        for (int j = 0; j < n_at_once; ++j) {
          const int column = left + first + j;
          is_there[j] = first + j < sizes.kernel && column >= 0 && column < sizes.width;
          if (is_there[j])
            values[j] = load_channels(x, place.at(top + row, column, sizes.n_packs(), sizes.height, sizes.width));
        }
        LOCKSTEP_UNROLL
        for (int j = 0; j < n_at_once; ++j) {
          if (!is_there[j]) continue;
          for (int k = 0; k < pack_channels; ++k) {
            const float value = values[j][k];
            if (chosen[k] >= 0 && value <= largest[k]) continue;
            if (largest[k] != largest[k]) continue;  // a NaN stays
            largest[k] = value;
            chosen[k] = static_cast<std::int8_t>(row * sizes.kernel + first + j);
          }
        }
      }
    }
    store_each(out, i, [&](int k) { return largest[k]; });
    if (places != nullptr) runtime::kernel::store(places, i, chosen);
  }
};

/// One window from which gradients of maxima are gathered; it may be beyond the last.
template <class T>
struct PoolWindow {
  Channels<T> gradient;
  std::uint64_t chosen;  ///< a byte for each channel, kept in two registers
  bool is_there;

  LOCKSTEP_HOST_DEVICE PoolWindow(const T* gradients, const std::int8_t* places, std::size_t at, bool is_one)
      : is_there{is_one} {
    if (!is_one) return;
    gradient = load_channels(gradients, at);
    chosen = std::bit_cast<std::uint64_t>(runtime::kernel::load<std::int8_t, pack_channels>(places, at));
  }
  /// Adds to the sums of the element at this place of the window.
  LOCKSTEP_HOST_DEVICE void add_to(Pack<float, pack_channels>& sum, unsigned here) const {
    if (!is_there) return;
    for (int k = 0; k < pack_channels; ++k) sum[k] += (chosen >> 8 * k & 0xff) == here ? gradient[k] : 0;
  }
};

template <class T>
struct PoolMaximaBackward {
  PoolSizes sizes;
  const T* gradient;
  const std::int8_t* places;
  T* out;

  [[nodiscard]] std::size_t n() const { return sizes.n_in(); }
  void touches(const auto& tell) const {
    const std::size_t n_out = sizes.n_out() * pack_channels;
    tell("pool_maxima_backward", {region(gradient, n_out), region(places, n_out)},
         {region(out, sizes.n_in() * pack_channels)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const PoolPlace place{i, sizes.n_packs(), sizes.height, sizes.width};
    const int y = place.y + sizes.padding, x = place.x + sizes.padding;
    Pack<float, pack_channels> sum{};
    LOCKSTEP_NO_UNROLL
    for (int row = first(y); row <= y / sizes.stride && row < sizes.out_height; ++row) {
      LOCKSTEP_NO_UNROLL
      for (int column = first(x); column <= x / sizes.stride && column < sizes.out_width; ++column) {
        const std::size_t at = place.at(row, column, sizes.n_packs(), sizes.out_height, sizes.out_width);
        const int here = (y - row * sizes.stride) * sizes.kernel + x - column * sizes.stride;
        PoolWindow<T>{gradient, places, at, true}.add_to(sum, static_cast<unsigned>(here));
      }
    }
    store_each(out, i, [&](int k) { return sum[k]; });
  }

 private:
  /// The first window that reaches a place, counted from the padding.
  LOCKSTEP_HOST_DEVICE int first(int at) const {
    return at < sizes.kernel ? 0 : (at - sizes.kernel) / sizes.stride + 1;
  }
};

/// The same for windows of 3x3 with stride 2 that reach one element beyond images of an even size, as in ResNets: one
/// thread computes a square of 2x2 elements, which four windows cover.
template <class T>
struct HalvedMaximaBackward {
  PoolMaximaBackward<T> all;

  [[nodiscard]] static bool takes(const PoolSizes& sizes) {
    return sizes.kernel == 3 && sizes.stride == 2 && sizes.padding == 1 && sizes.height == 2 * sizes.out_height &&
           sizes.width == 2 * sizes.out_width;
  }
  [[nodiscard]] std::size_t n() const { return all.sizes.n_out(); }
  void touches(const auto& tell) const { all.touches(tell); }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const PoolSizes& sizes = all.sizes;
    const PoolPlace place{i, sizes.n_packs(), sizes.out_height, sizes.out_width};
    const bool has_right = place.x + 1 < sizes.out_width, has_below = place.y + 1 < sizes.out_height;
    const std::size_t right = i + sizes.n_packs();
    const std::size_t below = i + static_cast<std::size_t>(sizes.out_width) * sizes.n_packs();
    // Adds windows in order, and loads late to save registers.
    const PoolWindow<T> here{all.gradient, all.places, i, true};
    Pack<float, pack_channels> sum{};
    here.add_to(sum, 4);
    store(place, 0, 0, sum);
    const PoolWindow<T> beside{all.gradient, all.places, right, has_right};
    sum = {};
    here.add_to(sum, 5);
    beside.add_to(sum, 3);
    store(place, 0, 1, sum);
    const PoolWindow<T> under{all.gradient, all.places, below, has_below};
    sum = {};
    here.add_to(sum, 7);
    under.add_to(sum, 1);
    store(place, 1, 0, sum);
    sum = {};
    here.add_to(sum, 8);
    beside.add_to(sum, 6);
    under.add_to(sum, 2);
    PoolWindow<T>{all.gradient, all.places, below + sizes.n_packs(), has_right && has_below}.add_to(sum, 0);
    store(place, 1, 1, sum);
  }

 private:
  LOCKSTEP_HOST_DEVICE void store(const PoolPlace& place, int row, int column,
                                  const Pack<float, pack_channels>& sum) const {
    const PoolSizes& sizes = all.sizes;
    store_each(all.out, place.at(2 * place.y + row, 2 * place.x + column, sizes.n_packs(), sizes.height, sizes.width),
               [&](int k) { return sum[k]; });
  }
};

/// As HalvedMaximaBackward if that takes the sizes.
template <class T>
void enqueue(runtime::Stream& stream, const PoolMaximaBackward<T>& body);

}  // namespace lockstep::nn::cuda
