// A build without cuDNN: nothing computes convolutions on a GPU.
#include "core/error.hpp"
#include "nn/cuda/convolution.hpp"

namespace lockstep::nn::cuda {

std::unique_ptr<Convolutions> open_convolutions(int /*n_threads*/, bool /*tunes*/) {
  throw core::Error{core::ExitCode::usage,
                    {.what = "this program is built without cuDNN, which trains on GPUs",
                     .where = "--device",
                     .expected = "cuDNN 9 beside CUDA, when it was built",
                     .fix = "build with it (INSTALL: GPUs), or --device host"}};
}

}  // namespace lockstep::nn::cuda
