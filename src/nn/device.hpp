// The devices that networks run on.
// Invariant: at most one per process, ever: its threads or its driver serve all executors.
// Used by the trainer and by tests; implemented by nn/host and nn/cuda.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/executor.hpp"
#include "nn/graph/network.hpp"

namespace lockstep::nn {

class Device {
 public:
  virtual ~Device() = default;

  /// `network` need not outlive it. Collective like options.agree.
  [[nodiscard]] virtual std::unique_ptr<Executor> make_executor(const Network& network,
                                                                const ExecutorOptions& options) = 0;

  /// The most channels of images whose pixels it can convert (Input::is_pixels); 0: it converts none.
  [[nodiscard]] virtual std::uint64_t most_pixel_channels() const noexcept { return 0; }
};

/// Opens the host with oneDNN and Kokkos and `n_threads` threads, including the calling one. Throws core::Error
/// (system) if this process has opened it before.
[[nodiscard]] std::unique_ptr<Device> open_device(int n_threads);

/// The most threads of the host: Kokkos supports no more.
inline constexpr int most_threads = 512;

/// Names and versions of the libraries that the host computes with.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> host_libraries();

/// Opens the accelerator in use, with its vendor's library; `n_threads` of the host compile for it while executors are
/// made. `tunes`: chooses the fastest plans again and among more, which takes minutes, and keeps them. Throws
/// core::Error (usage) if this program is built without it.
[[nodiscard]] std::unique_ptr<Device> open_accelerated_device(int n_threads, bool tunes = false);

/// What this program lacks for acceleration; empty if nothing.
[[nodiscard]] std::string_view lacking_for_acceleration() noexcept;

}  // namespace lockstep::nn
