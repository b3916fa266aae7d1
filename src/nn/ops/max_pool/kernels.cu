#include "nn/ops/max_pool/kernels.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::for_each;
using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const PoolMaxima<T>& body) {
  const std::size_t n_in = body.sizes.n_in() * pack_channels, n_out = body.sizes.n_out() * pack_channels;
  for_each(stream, "pool_maxima", body.n(), {region(body.x, n_in)},
           {region(body.out, n_out), region(body.places, body.places == nullptr ? 0 : n_out)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const PoolMaximaBackward<T>& body) {
  const std::size_t n_in = body.sizes.n_in() * pack_channels, n_out = body.sizes.n_out() * pack_channels;
  const auto enqueue_as = [&](const auto& one) {
    for_each(stream, "pool_maxima_backward", one.n(), {region(body.gradient, n_out), region(body.places, n_out)},
             {region(body.out, n_in)}, one);
  };
  if (HalvedMaximaBackward<T>::takes(body.sizes))
    enqueue_as(HalvedMaximaBackward<T>{body});
  else
    enqueue_as(body);
}

LOCKSTEP_KERNEL(PoolMaxima)
LOCKSTEP_KERNEL(PoolMaximaBackward)

}  // namespace lockstep::nn::cuda
