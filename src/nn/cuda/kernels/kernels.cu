// Enqueues the kernels of this folder, for all types of activations.
#include "nn/cuda/kernels/column_sums.hpp"
#include "nn/cuda/kernels/elementwise.hpp"
#include "nn/cuda/kernels/fold.hpp"
#include "nn/cuda/kernels/loss.hpp"
#include "nn/cuda/kernels/samples.hpp"
#include "nn/cuda/kernels/softmax_cross_entropy.hpp"

namespace lockstep::nn::cuda {
namespace {

using runtime::kernel::for_each;
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

template <class T>
void enqueue(runtime::Stream& stream, const Rectify<T>& body) {
  for_each(stream, "rectify", body.n(), {region(body.x, body.n_elements)}, {region(body.out, body.n_elements)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const RectifyBackward<T>& body) {
  const std::size_t n = body.n_elements;
  for_each(stream, "rectify_backward", body.n(),
           {region(body.y, n), region(body.a, n), region(body.b, body.b == nullptr ? 0 : n)}, {region(body.out, n)},
           body);
}

template <class T>
void enqueue(runtime::Stream& stream, const Sum<T>& body) {
  const std::size_t n = body.n_elements;
  for_each(stream, "sum", body.n(), {region(body.a, n), region(body.b, n)}, {region(body.out, n)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const AddBias<T>& body) {
  const std::size_t n = body.n_elements;
  for_each(stream, "add_bias", body.n(), {region(body.x, n), region(body.bias, body.n_channels)}, {region(body.out, n)},
           body);
}

template <class T>
void enqueue(runtime::Stream& stream, const KeepGradient<T>& body) {
  for_each(stream, "keep_gradient", body.n(),
           {region(body.gradient, body.n_elements), region(body.added, body.added == nullptr ? 0 : body.n_elements)},
           {region(body.out, body.n_elements)}, body);
}

LOCKSTEP_KERNEL(Rectify)
LOCKSTEP_KERNEL(RectifyBackward)
LOCKSTEP_KERNEL(Sum)
LOCKSTEP_KERNEL(AddBias)
LOCKSTEP_KERNEL(KeepGradient)

template <class T>
void enqueue(runtime::Stream& stream, const FoldImages<T>& body) {
  const std::size_t n_pixels =
      body.n_images * static_cast<std::size_t>(body.height) * static_cast<std::size_t>(body.width);
  for_each(stream, "fold_images", body.n(), {region(body.x, n_pixels * pack_channels)},
           {region(body.out, body.n() * Fold::n_channels)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const FoldWeight<T>& body) {
  const auto n_taps = static_cast<std::size_t>(body.fold.kernel * body.fold.kernel);
  for_each(stream, "fold_weight", body.n(), {region(body.weight, body.n_out * n_taps * pack_channels)},
           {region(body.out, body.n() * pack_channels)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const KeepFoldedGradient<T>& body) {
  const std::size_t n = body.n() * pack_channels;
  for_each(stream, "keep_folded_gradient", body.n(),
           {region(body.gradient, body.fold.weight_elements(body.n_out)), region(body.out, body.adds ? n : 0)},
           {region(body.out, n)}, body);
}

LOCKSTEP_KERNEL(FoldImages)
LOCKSTEP_KERNEL(FoldWeight)
LOCKSTEP_KERNEL(KeepFoldedGradient)

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

template <class T>
void enqueue(runtime::Stream& stream, const TakeSamples<T>& body) {
  const std::size_t n_places = body.n_samples * body.n_positions;
  for_each(stream, "take_samples", body.n(), {region(body.x, n_places * body.n_channels)},
           {region(body.out, n_places * body.padded_channels)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const LookUpPixels<T>& body) {
  runtime::kernel::enqueue(stream, "look_up_pixels", body.grid(),
                           {region(body.pixels, body.n_images * body.in_bytes()), region(body.views, body.n_images),
                            region(body.table, body.n_table())},
                           {region(body.out, body.n() * pack_channels)}, body);
}

LOCKSTEP_KERNEL(TakeSamples)
LOCKSTEP_KERNEL(LookUpPixels)

}  // namespace lockstep::nn::cuda
