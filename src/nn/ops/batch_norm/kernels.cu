#include "nn/cuda/kernels/enqueue.hpp"
#include "nn/ops/batch_norm/backward.hpp"
#include "nn/ops/batch_norm/normalize.hpp"
#include "nn/ops/batch_norm/ranks.hpp"
#include "nn/ops/batch_norm/statistics.hpp"

namespace lockstep::nn::cuda {

LOCKSTEP_KERNEL(PartialMoments)
LOCKSTEP_KERNEL(Normalize)
LOCKSTEP_KERNEL(PartialGradients)
LOCKSTEP_KERNEL(NormalizeBackward)
template void enqueue(runtime::Stream&, const GroupMoments&);
template void enqueue(runtime::Stream&, const MoveStatistics&);
template void enqueue(runtime::Stream&, const InvertDeviations&);
template void enqueue(runtime::Stream&, const GroupGradients&);
template void enqueue(runtime::Stream&, const ScaleShiftGradients&);
template void enqueue(runtime::Stream&, const ShareMoments&);
template void enqueue(runtime::Stream&, const JoinMoments&);
template void enqueue(runtime::Stream&, const JoinGradients&);

}  // namespace lockstep::nn::cuda
