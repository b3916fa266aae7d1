#include "nn/cuda/kernels/enqueue.hpp"
#include "nn/ops/dropout/kernels.hpp"

namespace lockstep::nn::cuda {

LOCKSTEP_KERNEL(DropElements)

}  // namespace lockstep::nn::cuda
