// Not all of cudnn_frontend.h, which takes six times as long to compile.
#include <cuda_runtime.h>
#include <cudnn.h>
#include <cudnn_frontend_utils.h>
//
#include <cudnn_frontend/backend/device_properties.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "gpu/cudnn_description.hpp"

namespace lockstep::test {

std::string describe_for_cudnn() {
  cudnn_frontend::DeviceProperties properties;
  std::vector<std::uint8_t> text;
  auto status = properties.set_device_id(0).build();
  if (status.is_good()) status = properties.serialize(text);
  if (status.is_bad()) core::fail_system("cuDNN does not describe the GPU: " + status.get_message());
  return {text.begin(), text.end()};
}

std::string cudnn_version() {
  const std::size_t version = cudnnGetVersion();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace lockstep::test
