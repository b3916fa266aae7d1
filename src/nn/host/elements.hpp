// Element-wise work on tensors that may hold float32 or bfloat16.
// Invariant: the type of a tensor's elements is that of its description, and never changes.
// Used by the layers of nn/ops, and by the programs and observers of nn/host.
#pragma once

#include <span>

#include "core/dtype.hpp"
#include "nn/host/loops.hpp"
#include "nn/host/parallel.hpp"
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
