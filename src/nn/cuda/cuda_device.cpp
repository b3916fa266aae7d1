#include "nn/cuda/cuda_executor.hpp"
#include "nn/cuda/kernels/math.hpp"
#include "nn/device.hpp"

namespace lockstep::nn {
namespace {

class CudaDevice final : public Device {
 public:
  CudaDevice(int n_threads, bool tunes) : convolutions_{cuda::open_convolutions(n_threads, tunes)} {}

  std::unique_ptr<Executor> make_executor(const Network& network, const ExecutorOptions& options) override {
    return cuda::make_cuda_executor(network, options, *convolutions_);
  }
  [[nodiscard]] std::uint64_t most_pixel_channels() const noexcept override { return cuda::pack_channels; }

 private:
  std::unique_ptr<cuda::Convolutions> convolutions_;
};

}  // namespace

std::unique_ptr<Device> open_accelerated_device(int n_threads, bool tunes) {
  return std::make_unique<CudaDevice>(n_threads, tunes);
}

}  // namespace lockstep::nn
