#include "nn/cuda/kernels/fold.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::for_each;
using runtime::kernel::region;

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

}  // namespace lockstep::nn::cuda
