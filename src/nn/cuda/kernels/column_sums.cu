#include "nn/cuda/kernels/column_sums.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const PartialSums<T>& body) {
  runtime::kernel::enqueue(stream, "partial_sums", body.grid(), {region(body.x, body.rows.n_elements())},
                           {region(body.partials, body.rows.n_partials())}, body);
}
LOCKSTEP_KERNEL(PartialSums)

void enqueue(runtime::Stream& stream, const ColumnSums& body) {
  const std::size_t n = body.rows.n_channels();
  runtime::kernel::enqueue(stream, "column_sums", body.grid(),
                           {region(body.partials, body.rows.n_partials()), region(body.out, body.adds ? n : 0)},
                           {region(body.out, n)}, body);
}

}  // namespace lockstep::nn::cuda
