#include "nn/cuda/kernels/column_sums.hpp"
#include "nn/cuda/kernels/elementwise.hpp"
#include "nn/cuda/kernels/enqueue.hpp"
#include "nn/cuda/kernels/fold.hpp"
#include "nn/cuda/kernels/loss.hpp"
#include "nn/cuda/kernels/samples.hpp"
#include "nn/cuda/kernels/softmax_cross_entropy.hpp"

namespace lockstep::nn::cuda {

LOCKSTEP_KERNEL(PartialSums)
LOCKSTEP_KERNEL(Rectify)
LOCKSTEP_KERNEL(RectifyBackward)
LOCKSTEP_KERNEL(Sum)
LOCKSTEP_KERNEL(AddBias)
LOCKSTEP_KERNEL(KeepGradient)
LOCKSTEP_KERNEL(FoldImages)
LOCKSTEP_KERNEL(FoldWeight)
LOCKSTEP_KERNEL(KeepFoldedGradient)
LOCKSTEP_KERNEL(SoftmaxCrossEntropy)
LOCKSTEP_KERNEL(NegativeLog)
LOCKSTEP_KERNEL(MeanSquare)
LOCKSTEP_KERNEL(TakeSamples)
LOCKSTEP_KERNEL(LookUpPixels)
template void enqueue(runtime::Stream&, const ColumnSums&);
template void enqueue(runtime::Stream&, const SumLosses&);

}  // namespace lockstep::nn::cuda
