#include "nn/ops/embedding/kernels.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::for_each;
using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const GatherRows<T>& body) {
  for_each(stream, "gather_rows", body.n(),
           {region(body.table, body.n_rows * body.width), region(body.ids, body.n_samples * body.n_columns)},
           {region(body.out, body.n_samples * body.width), region(body.has_bad_id, 1)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const AddSegments<T>& body) {
  const std::size_t n_table = body.n_rows * body.width;
  for_each(stream, "add_segments", body.n(),
           {region(body.sorted_ids, body.n_samples), region(body.samples, body.n_samples),
            region(body.gradient, body.n_samples * body.width), region(body.table, n_table)},
           {region(body.table, n_table)}, body);
}

LOCKSTEP_KERNEL(GatherRows)
LOCKSTEP_KERNEL(AddSegments)

}  // namespace lockstep::nn::cuda
