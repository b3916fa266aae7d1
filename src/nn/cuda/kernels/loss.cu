#include "nn/cuda/kernels/loss.hpp"
#include "nn/cuda/kernels/softmax_cross_entropy.hpp"

namespace lockstep::nn::cuda {
namespace {

using runtime::kernel::region;

template <class Body, class T, class Target>
void enqueue_loss(runtime::Stream& stream, const char* name, const Body& body, const LossRows<T>& rows,
                  const Target* targets, std::size_t n_targets) {
  if (rows.n_rows == 0) return;
  const std::size_t n = rows.n_rows * rows.row_elements;
  runtime::kernel::enqueue(
      stream, name, body.grid(),
      {region(rows.outputs, n), region(targets, n_targets), region(rows.numbers, rows.numbers == nullptr ? 0 : 1),
       region(rows.loss_scale, rows.loss_scale == nullptr ? 0 : 1)},
      {region(rows.gradient, rows.gradient == nullptr ? 0 : n), region(rows.losses, rows.n_rows),
       region(rows.has_bad_label, rows.has_bad_label == nullptr ? 0 : 1)},
      body);
}

}  // namespace

template <class T>
void enqueue(runtime::Stream& stream, const SoftmaxCrossEntropy<T>& body) {
  const char* const name = body.has_warp_for_row() ? "softmax_cross_entropy" : "softmax_of_long_rows";
  enqueue_loss(stream, name, body, body.rows, body.labels, body.rows.n_rows);
}

template <class T>
void enqueue(runtime::Stream& stream, const NegativeLog<T>& body) {
  enqueue_loss(stream, "negative_log", body, body.rows, body.labels, body.rows.n_rows);
}

template <class T>
void enqueue(runtime::Stream& stream, const MeanSquare<T>& body) {
  enqueue_loss(stream, "mean_square", body, body.rows, body.targets, body.rows.n_rows * body.rows.n_outputs);
}

void enqueue(runtime::Stream& stream, const SumLosses& body) {
  runtime::kernel::enqueue(stream, "sum_losses", SumLosses::grid(),
                           {region(body.losses, body.n_rows), region(body.totals, 1)}, {region(body.totals, 1)}, body);
}

LOCKSTEP_KERNEL(SoftmaxCrossEntropy)
LOCKSTEP_KERNEL(NegativeLog)
LOCKSTEP_KERNEL(MeanSquare)

}  // namespace lockstep::nn::cuda
