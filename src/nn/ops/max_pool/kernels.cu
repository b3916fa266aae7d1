#include "nn/cuda/kernels/enqueue.hpp"
#include "nn/ops/max_pool/kernels.hpp"

namespace lockstep::nn::cuda {

template <class T>
void enqueue(runtime::Stream& stream, const PoolMaximaBackward<T>& body) {
  if (HalvedMaximaBackward<T>::takes(body.sizes))
    enqueue_itself(stream, HalvedMaximaBackward<T>{body});
  else
    enqueue_itself(stream, body);
}

LOCKSTEP_KERNEL(PoolMaxima)
LOCKSTEP_KERNEL(PoolMaximaBackward)

}  // namespace lockstep::nn::cuda
