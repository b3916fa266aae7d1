#include "nn/cuda/layers.hpp"

namespace lockstep::nn::cuda {

/// It is part of the loss.
template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const LogSoftmax&) {
  return std::make_unique<SameLayer<T>>(planned);
}
LOCKSTEP_FOR_DEVICE_TYPES(LogSoftmax)

}  // namespace lockstep::nn::cuda
