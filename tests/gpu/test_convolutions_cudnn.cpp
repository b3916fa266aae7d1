#include <algorithm>

#include "nn/cuda/cudnn_graph.hpp"
#include "support/test_convolutions.hpp"

namespace lockstep::test {

std::unique_ptr<nn::cuda::Convolutions> make_convolutions() { return std::make_unique<nn::cuda::CudnnConvolutions>(); }

// Products of TF32 have factors of 11 bits, 2^-11 off each, and errors grow from layer to layer.
double tolerance_in_f32(double exact) { return std::max(exact, 0.02); }

}  // namespace lockstep::test
