// Element-wise work on tensors that may hold float32 or bfloat16.
// Invariant: the type of a tensor's elements is that of its description, and never changes.
// Used by the layers of nn/ops, and by the programs and observers of nn/host.
#pragma once

#include <span>

#include "core/dtype.hpp"
#include "nn/host/loops.hpp"
#include "nn/host/parallel.hpp"
#include "nn/host/parameter_layout.hpp"
#include "nn/host/storage.hpp"

namespace lockstep::nn::host {

/// Calls f(T{}), where T is the type of the tensor's elements.
template <class F>
auto with_type(const Tensor& tensor, const F& f) {
  return type_of(tensor.desc) == dnnl::memory::data_type::bf16 ? f(core::bfloat16{}) : f(float{});
}

/// Calls loop(begin, end) for parts of all the tensor's elements, including padding.
template <class F>
void for_elements(const Tensor& tensor, const F& loop) {
  for_parts(n_physical(tensor.desc), least_elements, loop);
}

/// Computes x as float32, or rounded to bfloat16, for all elements of a tensor `x` of the other type.
inline void widen(const Storage& storage, const Tensor& x, const Place& out) {
  const auto* const from = storage.at<const core::bfloat16>(x.place);
  auto* const to = storage.at<float>(out);
  for_elements(
      x, [&](std::size_t begin, std::size_t end) { loops().bfloats.to_floats(from + begin, to + begin, end - begin); });
}
inline void round(const Storage& storage, const Place& x, const Tensor& out) {
  const auto* const from = storage.at<const float>(x);
  auto* const to = storage.at<core::bfloat16>(out.place);
  for_elements(out, [&](std::size_t begin, std::size_t end) {
    loops().bfloats.from_floats(from + begin, to + begin, end - begin);
  });
}

inline void rectify(const Storage& storage, const Place& x, const Tensor& out) {
  with_type(out, [&]<class T>(T) {
    const auto* const from = storage.at<const T>(x);
    auto* const to = storage.at<T>(out.place);
    for_elements(
        out, [&](std::size_t begin, std::size_t end) { loops().of<T>().relu(from + begin, to + begin, end - begin); });
  });
}

/// Computes the gradient before a ReLU from its output and the sum of one or two gradients of the output.
inline void relu_backward(const Storage& storage, const Tensor& output, std::span<const Place> gradients,
                          const Tensor& result) {
  with_type(output, [&]<class T>(T) {
    const auto* const y = storage.at<const T>(output.place);
    const auto* const a = storage.at<const T>(gradients[0]);
    const auto* const b = gradients.size() > 1 ? storage.at<const T>(gradients[1]) : nullptr;
    auto* const out = storage.at<T>(result.place);
    for_elements(output, [&](std::size_t begin, std::size_t end) {
      loops().of<T>().relu_backward(y + begin, a + begin, b ? b + begin : nullptr, out + begin, end - begin);
    });
  });
}

}  // namespace lockstep::nn::host
