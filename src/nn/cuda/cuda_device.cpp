#include "nn/cuda/cuda_executor.hpp"
#include "nn/cuda/kernels/math.hpp"
#include "nn/device.hpp"

namespace lockstep::nn {
namespace {

class CudaDevice final : public Device {
 public:
  CudaDevice() : convolutions_{cuda::open_convolutions()} {}

  std::unique_ptr<Executor> make_executor(const Network& network, const ExecutorOptions& options) override {
    return cuda::make_cuda_executor(network, options, *convolutions_);
  }
  [[nodiscard]] std::uint64_t most_pixel_channels() const noexcept override { return cuda::pack_channels; }

 private:
  std::unique_ptr<cuda::Convolutions> convolutions_;
};

}  // namespace

std::unique_ptr<Device> open_accelerated_device() { return std::make_unique<CudaDevice>(); }

}  // namespace lockstep::nn
