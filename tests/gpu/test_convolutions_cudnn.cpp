#include <algorithm>

#include "nn/cuda/cudnn_graph.hpp"
#include "support/test_convolutions.hpp"

namespace lockstep::test {

std::unique_ptr<nn::cuda::Convolutions> make_convolutions(bool fuses) {
  return std::make_unique<nn::cuda::CudnnConvolutions>(nn::cuda::PlanChoice{.always_fuses = fuses});
}

// The order of summation differs; errors grow from layer to layer.
double tolerance_in_f32(double exact) { return std::max(exact, 1e-3); }

}  // namespace lockstep::test
