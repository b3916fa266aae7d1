// Converts samples from the loader's layout to the network's, and gradients to the arena's.
// Invariant: padding becomes 0; each element has one thread.
// Used by nn/cuda.
#pragma once

#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

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
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t n_packs = padded_channels / pack_channels, pack = i % n_packs, place = i / n_packs;
    const std::size_t sample = place / n_positions, position = place % n_positions;
    Channels<T> result;
    for (int k = 0; k < pack_channels; ++k) {
      const std::size_t c = pack * pack_channels + static_cast<std::size_t>(k);
      result.set(k, c < n_channels ? x[(sample * n_channels + c) * n_positions + position] : 0);
    }
    store_channels(out, i, result);
  }
};

/// Writes a gradient, a multiple of 8 elements, to its place in float32.
template <class T>
struct KeepGradient {
  std::size_t n_elements;
  const T* gradient;
  const float* added;  ///< the present values; or null
  float* out;

  [[nodiscard]] std::size_t n() const { return n_elements / pack_channels; }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const auto values = load_channels(gradient, i);
    auto kept = load_channels_or_0(added, i);
    for (int k = 0; k < pack_channels; ++k) kept.set(k, kept[k] + values[k]);
    store_channels(out, i, kept);
  }
};

template <class T>
void enqueue(runtime::Stream& stream, const TakeSamples<T>& body);
template <class T>
void enqueue(runtime::Stream& stream, const KeepGradient<T>& body);

}  // namespace lockstep::nn::cuda
