#include "nn/cuda/kernels/images.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const LookUpPixels<T>& body) {
  runtime::kernel::enqueue(stream, "look_up_pixels", body.grid(),
                           {region(body.pixels, body.n_images * body.in_bytes()), region(body.views, body.n_images),
                            region(body.table, body.n_table())},
                           {region(body.out, body.n() * pack_channels)}, body);
}
template void enqueue(runtime::Stream&, const LookUpPixels<core::bfloat16>&);
template void enqueue(runtime::Stream&, const LookUpPixels<core::float16>&);
template void enqueue(runtime::Stream&, const LookUpPixels<float>&);

}  // namespace lockstep::nn::cuda
