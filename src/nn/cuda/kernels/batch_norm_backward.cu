#include "nn/cuda/kernels/batch_norm_backward.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::region;

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

#define LOCKSTEP_BATCH_NORM_BACKWARD(T)                                \
  template void enqueue(runtime::Stream&, const PartialGradients<T>&); \
  template void enqueue(runtime::Stream&, const NormalizeBackward<T>&);
LOCKSTEP_BATCH_NORM_BACKWARD(core::bfloat16)
LOCKSTEP_BATCH_NORM_BACKWARD(core::float16)
LOCKSTEP_BATCH_NORM_BACKWARD(float)
#undef LOCKSTEP_BATCH_NORM_BACKWARD

}  // namespace lockstep::nn::cuda
