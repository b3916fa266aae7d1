#include "nn/cuda/kernels/elementwise.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::for_each;
using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const Rectify<T>& body) {
  for_each(stream, "rectify", body.n(), {region(body.x, body.n_elements)}, {region(body.out, body.n_elements)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const RectifyBackward<T>& body) {
  const std::size_t n = body.n_elements;
  for_each(stream, "rectify_backward", body.n(),
           {region(body.y, n), region(body.a, n), region(body.b, body.b == nullptr ? 0 : n)}, {region(body.out, n)},
           body);
}

template <class T>
void enqueue(runtime::Stream& stream, const Sum<T>& body) {
  const std::size_t n = body.n_elements;
  for_each(stream, "sum", body.n(), {region(body.a, n), region(body.b, n)}, {region(body.out, n)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const AddBias<T>& body) {
  const std::size_t n = body.n_elements;
  for_each(stream, "add_bias", body.n(), {region(body.x, n), region(body.bias, body.n_channels)}, {region(body.out, n)},
           body);
}

LOCKSTEP_KERNEL(Rectify)
LOCKSTEP_KERNEL(RectifyBackward)
LOCKSTEP_KERNEL(Sum)
LOCKSTEP_KERNEL(AddBias)

}  // namespace lockstep::nn::cuda
