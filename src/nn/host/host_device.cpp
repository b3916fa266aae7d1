#include <dnnl.h>
#include <fmt/format.h>
#include <omp.h>

#include <Kokkos_Core.hpp>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "core/error.hpp"
#include "nn/device.hpp"
#include "nn/host/host_executor.hpp"
#include "nn/host/kokkos_session.hpp"

namespace lockstep::nn {
namespace {

/// If OMP_NUM_THREADS is far too large, a signal kills the process when Kokkos starts, whatever number Kokkos is given.
/// A list has one number per level.
void require_possible_threads() {
  constexpr long most = 4096;
  const char* const variable = std::getenv("OMP_NUM_THREADS");
  if (variable == nullptr || std::strtol(variable, nullptr, 10) <= most) return;
  core::fail_usage({.what = fmt::format("OMP_NUM_THREADS is {}", variable),
                    .where = "OMP_NUM_THREADS",
                    .expected = fmt::format("at most {} threads", most),
                    .fix = "set it to the number of cores of a rank, or unset it: --threads says how many compute"});
}

/// Kokkos starts once in a process, so devices that live at the same time (ranks as threads) share it.
std::shared_ptr<host::KokkosSession> share_kokkos(int n_threads) {
  static std::mutex mutex;
  static std::weak_ptr<host::KokkosSession> current;
  const std::lock_guard lock{mutex};
  std::shared_ptr<host::KokkosSession> session = current.lock();
  if (!session) current = session = std::make_shared<host::KokkosSession>(n_threads);
  core::require(session->n_threads() == n_threads, "all devices of a process have the same number of threads");
  omp_set_num_threads(n_threads);  // for oneDNN on this thread: Kokkos set it only for the thread that started it
  return session;
}

class HostDevice final : public Device {
 public:
  explicit HostDevice(int n_threads) : kokkos_{share_kokkos(n_threads)} {}

  std::unique_ptr<Executor> make_executor(const Network& network, const ExecutorOptions& options) override {
    if (options.precision == Precision::f16)
      core::fail_usage({.what = "f16 runs only on GPUs, and this run is on the host",
                        .where = "--precision",
                        .expected = "f32 or bf16",
                        .fix = "--device cuda where there is a GPU, or --precision bf16"});
    return std::make_unique<host::HostExecutor>(network, options);
  }

 private:
  std::shared_ptr<host::KokkosSession> kokkos_;
};

}  // namespace

std::unique_ptr<Device> open_device(int n_threads) {
  require_possible_threads();
  return std::make_unique<HostDevice>(n_threads);
}

std::vector<std::pair<std::string, std::string>> host_libraries() {
  const dnnl_version_t& onednn = *dnnl_version();
  return {
      {"kokkos", fmt::format("{}.{}.{:02}", KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100, KOKKOS_VERSION % 100)},
      {"onednn", fmt::format("{}.{}.{}", onednn.major, onednn.minor, onednn.patch)}};
}

}  // namespace lockstep::nn
