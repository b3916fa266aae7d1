#include "nn/ops/layer_norm/kernels.hpp"

namespace lockstep::nn::cuda {

using runtime::kernel::region;

template <class T>
void enqueue(runtime::Stream& stream, const NormalizeFeatures<T>& body) {
  const std::size_t n = body.rows.n_elements(), n_channels = body.rows.n_channels();
  const std::size_t n_kept = body.mean == nullptr ? 0 : body.rows.n_rows;
  runtime::kernel::enqueue(stream, "normalize_features", body.grid(),
                           {region(body.x, n), region(body.weight, n_channels), region(body.bias, n_channels)},
                           {region(body.out, n), region(body.mean, n_kept), region(body.inverse, n_kept)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const NormalizeFeaturesBackward<T>& body) {
  const std::size_t n = body.rows.n_elements(), n_rows = body.rows.n_rows;
  runtime::kernel::enqueue(stream, "normalize_features_backward", body.grid(),
                           {region(body.x, n), region(body.gradient, n), region(body.weight, body.rows.n_channels()),
                            region(body.mean, n_rows), region(body.inverse, n_rows)},
                           {region(body.out, n)}, body);
}

template <class T>
void enqueue(runtime::Stream& stream, const PartialFeatureGradients<T>& body) {
  const std::size_t n = body.rows.n_elements(), n_rows = body.rows.n_rows_of(0), n_partials = body.rows.n_partials();
  runtime::kernel::enqueue(
      stream, "partial_feature_gradients", body.grid(),
      {region(body.x, n), region(body.gradient, n), region(body.mean, n_rows), region(body.inverse, n_rows)},
      {region(body.of_weight, n_partials), region(body.of_bias, n_partials)}, body);
}

LOCKSTEP_KERNEL(NormalizeFeatures)
LOCKSTEP_KERNEL(NormalizeFeaturesBackward)
LOCKSTEP_KERNEL(PartialFeatureGradients)

}  // namespace lockstep::nn::cuda
