#include "core/error.hpp"
#include "nn/device.hpp"
#include "nn/host/host_executor.hpp"
#include "nn/host/kokkos_session.hpp"

namespace lockstep::nn {
namespace {

class HostDevice final : public Device {
 public:
  explicit HostDevice(int n_threads) : kokkos_{n_threads} {}

  std::unique_ptr<Executor> make_executor(const Network& network, const ExecutorOptions& options) override {
    if (options.precision == Precision::f16)
      core::fail_usage({.what = "f16 is a precision of GPUs, and this run is on the host",
                        .where = "--precision",
                        .expected = "f32 or bf16",
                        .fix = "--device cuda where there is a GPU, or --precision bf16"});
    return std::make_unique<host::HostExecutor>(network, options);
  }

 private:
  host::KokkosSession kokkos_;
};

}  // namespace

std::unique_ptr<Device> open_device(int n_threads) { return std::make_unique<HostDevice>(n_threads); }

}  // namespace lockstep::nn
