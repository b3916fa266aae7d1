#include "nn/cuda/layers.hpp"

namespace lockstep::nn::cuda {

template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Flatten&) {
  return std::make_unique<SameLayer<T>>(planned);
}
LOCKSTEP_FOR_DEVICE_TYPES(Flatten)

}  // namespace lockstep::nn::cuda
