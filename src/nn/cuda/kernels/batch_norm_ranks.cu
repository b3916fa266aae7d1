#include "nn/cuda/kernels/batch_norm_ranks.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::for_each;
using runtime::kernel::region;

void enqueue(runtime::Stream& stream, const ShareMoments& body) {
  const std::size_t n = body.n_channels;
  for_each(stream, "share_moments", n, {region(body.moments, n)}, {region(body.shared, shared_elements(n))}, body);
}

void enqueue(runtime::Stream& stream, const JoinMoments& body) {
  const std::size_t n = body.n_channels;
  for_each(stream, "join_moments", n, {region(body.shared, shared_elements(n))},
           {region(body.moments, n), region(body.mean, n), region(body.inverse, n)}, body);
}

void enqueue(runtime::Stream& stream, const JoinGradients& body) {
  const std::size_t n = body.n_channels;
  for_each(stream, "join_gradients", n, {region(body.sums, n), region(body.moments, n), region(body.inverse, n)},
           {region(body.offset, n), region(body.slope, n)}, body);
}

}  // namespace lockstep::nn::cuda
