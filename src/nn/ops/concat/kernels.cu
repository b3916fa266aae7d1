#include "nn/cuda/kernels/enqueue.hpp"
#include "nn/ops/concat/kernels.hpp"

namespace lockstep::nn::cuda {

LOCKSTEP_KERNEL(CopyColumns)

}  // namespace lockstep::nn::cuda
