#include "nn/ops/batch_norm/backward.hpp"
#include "nn/ops/batch_norm/normalize.hpp"
#include "nn/ops/batch_norm/ranks.hpp"
#include "nn/ops/batch_norm/statistics.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::for_each;
using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const PartialMoments<T>& body) {
  runtime::kernel::enqueue(stream, "partial_moments", body.grid(), {region(body.x, body.rows.n_elements())},
                           {region(body.partials, body.rows.n_partials())}, body);
}

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

template <class T>
void enqueue(runtime::Stream& stream, const Normalize<T>& body) {
  const std::size_t channels = body.rows.n_channels(), n = body.rows.n_elements();
  const std::size_t of_groups = body.rows.n_groups() * channels;
  runtime::kernel::enqueue(
      stream, "normalize", body.grid(),
      {region(body.x, n), region(body.residual, body.residual == nullptr ? 0 : n), region(body.mean, of_groups),
       region(body.inverse, of_groups), region(body.weight, channels), region(body.bias, channels)},
      {region(body.out, n), region(body.mask, body.mask == nullptr ? 0 : n / pack_channels)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const PartialGradients<T>& body) {
  const std::size_t n = body.rows.n_elements();
  runtime::kernel::enqueue(stream, "partial_gradients", body.grid(),
                           {region(body.x, n), region(body.passed.gradient, n),
                            region(body.passed.skip, body.passed.skip == nullptr ? 0 : n),
                            region(body.passed.mask, body.passed.mask == nullptr ? 0 : n / pack_channels),
                            region(body.mean, body.rows.n_groups() * body.rows.n_channels())},
                           {region(body.partials, body.rows.n_partials()),
                            region(body.residual_gradient, body.residual_gradient == nullptr ? 0 : n)},
                           body);
}

void enqueue(runtime::Stream& stream, const GroupGradients& body) {
  const std::size_t n = body.rows.n_groups() * body.rows.n_channels();
  const ScaleShiftGradients& of = body.of_parameters;
  const std::size_t n_read = of.adds ? of.n_channels : 0;
  runtime::kernel::enqueue(stream, "group_gradients", body.grid(),
                           {region(body.partials, body.rows.n_partials()), region(body.inverse, n),
                            region(of.of_weight, n_read), region(of.of_bias, n_read)},
                           {region(body.sums, n), region(body.offset, n), region(body.slope, n),
                            region(of.of_weight, of.n_channels), region(of.of_bias, of.n_channels)},
                           body);
}

void enqueue(runtime::Stream& stream, const ScaleShiftGradients& body) {
  const std::size_t channels = body.n_channels, n = body.n_groups * channels, n_read = body.adds ? channels : 0;
  runtime::kernel::for_each(
      stream, "scale_shift_gradients", channels,
      {region(body.sums, n), region(body.inverse, n), region(body.of_weight, n_read), region(body.of_bias, n_read)},
      {region(body.of_weight, channels), region(body.of_bias, channels)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const NormalizeBackward<T>& body) {
  const std::size_t n = body.rows.n_elements(), of_groups = body.rows.n_groups() * body.rows.n_channels();
  runtime::kernel::enqueue(
      stream, "normalize_backward", body.grid(),
      {region(body.x, n), region(body.passed.gradient, n),
       region(body.passed.skip, body.passed.skip == nullptr ? 0 : n),
       region(body.passed.mask, body.passed.mask == nullptr ? 0 : n / pack_channels), region(body.mean, of_groups),
       region(body.inverse, of_groups), region(body.offset, of_groups), region(body.slope, of_groups),
       region(body.weight, body.rows.n_channels())},
      {region(body.out, n)}, body);
}

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

LOCKSTEP_KERNEL(PartialMoments)
LOCKSTEP_KERNEL(Normalize)
LOCKSTEP_KERNEL(PartialGradients)
LOCKSTEP_KERNEL(NormalizeBackward)

}  // namespace lockstep::nn::cuda
