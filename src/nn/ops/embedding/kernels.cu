#include "nn/cuda/kernels/enqueue.hpp"
#include "nn/ops/embedding/kernels.hpp"

namespace lockstep::nn::cuda {

LOCKSTEP_KERNEL(GatherRows)
LOCKSTEP_KERNEL(AddSegments)

}  // namespace lockstep::nn::cuda
