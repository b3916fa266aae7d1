#include "nn/cuda/kernels/enqueue.hpp"
#include "nn/ops/layer_norm/kernels.hpp"

namespace lockstep::nn::cuda {

LOCKSTEP_KERNEL(NormalizeFeatures)
LOCKSTEP_KERNEL(NormalizeFeaturesBackward)
LOCKSTEP_KERNEL(PartialFeatureGradients)

}  // namespace lockstep::nn::cuda
