#include "nn/ops/dropout/kernels.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const DropElements<T>& body) {
  const std::size_t n = body.n() * pack_channels;
  runtime::kernel::enqueue(stream, "drop_elements", body.grid(),
                           {region(body.x, n), region(body.ids, body.n_samples), region(body.numbers, 1)},
                           {region(body.out, n)}, body);
}
LOCKSTEP_KERNEL(DropElements)

}  // namespace lockstep::nn::cuda
