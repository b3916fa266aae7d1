#include "nn/cuda/kernels/enqueue.hpp"
#include "nn/ops/global_avg_pool/kernels.hpp"

namespace lockstep::nn::cuda {

LOCKSTEP_KERNEL(Averages)
LOCKSTEP_KERNEL(AveragesBackward)

}  // namespace lockstep::nn::cuda
