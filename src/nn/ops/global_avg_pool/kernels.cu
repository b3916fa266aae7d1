#include "nn/ops/global_avg_pool/kernels.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::for_each;
using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const Averages<T>& body) {
  const std::size_t n = body.n_images * body.n_channels;
  for_each(stream, "averages", body.n(), {region(body.x, n * body.n_positions)}, {region(body.out, n)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const AveragesBackward<T>& body) {
  const std::size_t n = body.n_images * body.n_channels;
  for_each(stream, "averages_backward", body.n(), {region(body.gradient, n)}, {region(body.out, n * body.n_positions)},
           body);
}

LOCKSTEP_KERNEL(Averages)
LOCKSTEP_KERNEL(AveragesBackward)

}  // namespace lockstep::nn::cuda
