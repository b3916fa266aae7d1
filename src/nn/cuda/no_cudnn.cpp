// A build without cuDNN: nothing computes convolutions on a GPU.
#include <string>

#include "core/error.hpp"
#include "nn/cuda/convolution.hpp"
#include "nn/device.hpp"

namespace lockstep::nn {

std::string_view lacking_for_acceleration() noexcept {
  return "this program is built without cuDNN, which trains on GPUs";
}

std::unique_ptr<cuda::Convolutions> cuda::open_convolutions(int /*n_threads*/, bool /*tunes*/) {
  throw core::Error{core::ExitCode::usage,
                    {.what = std::string{lacking_for_acceleration()},
                     .where = "--device",
                     .expected = "cuDNN 9 and its frontend beside CUDA, when it was built",
                     .fix = "build with them (INSTALL: GPUs), or --device host"}};
}

}  // namespace lockstep::nn
