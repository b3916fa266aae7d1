// A build without cuDNN has no convolutions on a GPU.
#include <string>

#include "core/error.hpp"
#include "nn/cuda/convolution.hpp"
#include "nn/device.hpp"

namespace lockstep::nn {

std::string_view lacking_for_acceleration() noexcept {
  return "this program is built without cuDNN, which training on GPUs needs";
}

std::unique_ptr<cuda::Convolutions> cuda::open_convolutions(int /*n_threads*/, bool /*tunes*/) {
  throw core::Error{core::ExitCode::usage,
                    {.what = std::string{lacking_for_acceleration()},
                     .where = "--device",
                     .expected = "a program built with CUDA, cuDNN 9 and its frontend",
                     .fix = "build with them (INSTALL: GPUs), or --device host"}};
}

}  // namespace lockstep::nn
