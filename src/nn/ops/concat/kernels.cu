#include "nn/ops/concat/kernels.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const CopyColumns<T>& body) {
  runtime::kernel::for_each(stream, "copy_columns", body.n(), {region(body.from, body.n_rows * body.from_width)},
                            {region(body.to, body.n_rows * body.to_width)}, body);
}
LOCKSTEP_KERNEL(CopyColumns)

}  // namespace lockstep::nn::cuda
