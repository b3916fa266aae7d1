#include "nn/cuda/kernels/batch_norm_ranks.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::for_each;
using runtime::kernel::region;

void enqueue(runtime::Stream& stream, const WeighMeans& body) {
  const std::size_t n = body.n_channels;
  for_each(stream, "weigh_means", n, {region(body.moments, n)}, {region(body.sums, n + 1)}, body);
}

void enqueue(runtime::Stream& stream, const WeighDeviations& body) {
  const std::size_t n = body.n_channels;
  for_each(stream, "weigh_deviations", n, {region(body.moments, n), region(body.sums, n + 1)},
           {region(body.squares, n)}, body);
}

void enqueue(runtime::Stream& stream, const JoinMoments& body) {
  const std::size_t n = body.n_channels;
  for_each(stream, "join_moments", n, {region(body.sums, n + 1), region(body.squares, n)},
           {region(body.moments, n), region(body.mean, n), region(body.inverse, n)}, body);
}

void enqueue(runtime::Stream& stream, const JoinGradients& body) {
  const std::size_t n = body.n_channels;
  for_each(stream, "join_gradients", n, {region(body.sums, n), region(body.moments, n), region(body.inverse, n)},
           {region(body.offset, n), region(body.slope, n)}, body);
}

}  // namespace lockstep::nn::cuda
