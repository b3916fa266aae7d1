#include "nn/cuda/kernels/batch_norm_normalize.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::region;

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
template void enqueue(runtime::Stream&, const Normalize<core::bfloat16>&);
template void enqueue(runtime::Stream&, const Normalize<core::float16>&);
template void enqueue(runtime::Stream&, const Normalize<float>&);

}  // namespace lockstep::nn::cuda
