#include "nn/cuda/kernels/images.hpp"
#include "nn/cuda/kernels/samples.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::for_each;
using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const TakeSamples<T>& body) {
  const std::size_t n_places = body.n_samples * body.n_positions;
  for_each(stream, "take_samples", body.n(), {region(body.x, n_places * body.n_channels)},
           {region(body.out, n_places * body.padded_channels)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const KeepGradient<T>& body) {
  for_each(stream, "keep_gradient", body.n(),
           {region(body.gradient, body.n_elements), region(body.added, body.added == nullptr ? 0 : body.n_elements)},
           {region(body.out, body.n_elements)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const LookUpPixels<T>& body) {
  runtime::kernel::enqueue(stream, "look_up_pixels", body.grid(),
                           {region(body.pixels, body.n_images * body.in_bytes()), region(body.views, body.n_images),
                            region(body.table, body.n_table())},
                           {region(body.out, body.n() * pack_channels)}, body);
}

LOCKSTEP_KERNEL(TakeSamples)
LOCKSTEP_KERNEL(KeepGradient)
LOCKSTEP_KERNEL(LookUpPixels)

}  // namespace lockstep::nn::cuda
