// Operations on single elements, in packs of eight; n_elements is a multiple of 8.
// Invariant: computed in float32 and rounded once, with the bits of nn/host's loops; 0 stays 0 where padding is, and
// NaN stays NaN. Outputs may be inputs.
// Used by nn/cuda and ops/add.
#pragma once

#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

LOCKSTEP_HOST_DEVICE inline float positive_part(float x) noexcept { return x <= 0 ? 0 : x; }

template <class T>
struct Rectify {
  std::size_t n_elements;
  const T* x;
  T* out;

  [[nodiscard]] std::size_t n() const { return n_elements / pack_channels; }
  void touches(const auto& tell) const { tell("rectify", {region(x, n_elements)}, {region(out, n_elements)}); }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const auto values = load_channels(x, i);
    store_each(out, i, [&](int k) { return positive_part(values[k]); });
  }
};

/// The gradient before a ReLU with output y, also after an addition: 0 where y <= 0, else a, or a + b unless b is null.
template <class T>
struct RectifyBackward {
  std::size_t n_elements;
  const T* y;
  const T* a;
  const T* b;
  T* out;

  [[nodiscard]] std::size_t n() const { return n_elements / pack_channels; }
  void touches(const auto& tell) const {
    tell("rectify_backward", {region(y, n_elements), region(a, n_elements), region(b, b == nullptr ? 0 : n_elements)},
         {region(out, n_elements)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const auto of_y = load_channels(y, i), of_a = load_channels(a, i), of_b = load_channels_or_0(b, i);
    store_each(out, i, [&](int k) { return of_y[k] <= 0 ? 0 : b == nullptr ? of_a[k] : of_a[k] + of_b[k]; });
  }
};

template <class T>
struct Sum {
  std::size_t n_elements;
  const T* a;
  const T* b;
  bool has_relu;
  T* out;

  [[nodiscard]] std::size_t n() const { return n_elements / pack_channels; }
  void touches(const auto& tell) const {
    tell("sum", {region(a, n_elements), region(b, n_elements)}, {region(out, n_elements)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const auto of_a = load_channels(a, i), of_b = load_channels(b, i);
    store_each(out, i, [&](int k) { return has_relu ? positive_part(of_a[k] + of_b[k]) : of_a[k] + of_b[k]; });
  }
};

/// Adds a bias to rows of n_channels, a multiple of 8.
template <class T>
struct AddBias {
  std::size_t n_elements;
  std::size_t n_channels;
  const T* x;
  const float* bias;
  bool has_relu;
  T* out;

  [[nodiscard]] std::size_t n() const { return n_elements / pack_channels; }
  void touches(const auto& tell) const {
    tell("add_bias", {region(x, n_elements), region(bias, n_channels)}, {region(out, n_elements)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const auto values = load_channels(x, i);
    const auto added = load_channels(bias, i % (n_channels / pack_channels));
    store_each(out, i, [&](int k) { return has_relu ? positive_part(values[k] + added[k]) : values[k] + added[k]; });
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
  void touches(const auto& tell) const {
    tell("keep_gradient", {region(gradient, n_elements), region(added, added == nullptr ? 0 : n_elements)},
         {region(out, n_elements)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const auto values = load_channels(gradient, i);
    const auto kept = load_channels_or_0(added, i);
    store_each(out, i, [&](int k) { return kept[k] + values[k]; });
  }
};

}  // namespace lockstep::nn::cuda
