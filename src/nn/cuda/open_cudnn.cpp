#include "nn/cuda/cudnn_graph.hpp"

namespace lockstep::nn::cuda {

std::unique_ptr<Convolutions> open_convolutions() { return std::make_unique<CudnnConvolutions>(); }

}  // namespace lockstep::nn::cuda
