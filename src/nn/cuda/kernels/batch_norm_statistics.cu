#include "nn/cuda/kernels/batch_norm_statistics.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const PartialMoments<T>& body) {
  runtime::kernel::enqueue(stream, "partial_moments", body.grid(), {region(body.x, body.rows.n_elements())},
                           {region(body.partials, body.rows.n_partials())}, body);
}
template void enqueue(runtime::Stream&, const PartialMoments<core::bfloat16>&);
template void enqueue(runtime::Stream&, const PartialMoments<core::float16>&);
template void enqueue(runtime::Stream&, const PartialMoments<float>&);

void enqueue(runtime::Stream& stream, const GroupMoments& body) {
  const std::size_t n = body.rows.n_groups() * body.rows.n_channels(), n_moved = body.move.n_channels;
  runtime::kernel::enqueue(
      stream, "group_moments", body.grid(),
      {region(body.partials, body.rows.n_partials()), region(body.move.numbers, n_moved > 0 ? 1 : 0),
       region(body.move.running_mean, n_moved), region(body.move.running_variance, n_moved)},
      {region(body.moments, n), region(body.mean, n), region(body.inverse, n), region(body.move.running_mean, n_moved),
       region(body.move.running_variance, n_moved)},
      body);
}

void enqueue(runtime::Stream& stream, const MoveStatistics& body) {
  const std::size_t n = body.n_channels;
  runtime::kernel::for_each(stream, "move_statistics", n,
                            {region(body.moments, body.n_groups * n), region(body.numbers, 1),
                             region(body.running_mean, n), region(body.running_variance, n)},
                            {region(body.running_mean, n), region(body.running_variance, n)}, body);
}

void enqueue(runtime::Stream& stream, const InvertDeviations& body) {
  const std::size_t n_channels = body.n_channels;
  runtime::kernel::for_each(stream, "invert_deviations", n_channels, {region(body.running_variance, n_channels)},
                            {region(body.inverse, n_channels)}, body);
}

}  // namespace lockstep::nn::cuda
