// What networks run on.
// Invariant: at most one per process, ever: its threads or its driver are those of all executors.
// Used by the trainer and by tests; implemented by nn/host and nn/cuda.
#pragma once

#include <memory>
#include <string_view>

#include "nn/executor.hpp"
#include "nn/network.hpp"

namespace lockstep::nn {

class Device {
 public:
  virtual ~Device() = default;

  /// `network` need not outlive it. Collective as options.agree is.
  [[nodiscard]] virtual std::unique_ptr<Executor> make_executor(const Network& network,
                                                                const ExecutorOptions& options) = 0;

  /// Of images whose pixels may be left to it (Input::is_pixels): channels, at most; 0: of none.
  [[nodiscard]] virtual std::uint64_t most_pixel_channels() const noexcept { return 0; }
};

/// The host, by oneDNN and Kokkos, with `n_threads` threads, the calling one among them. Throws core::Error (system) if
/// there is or was one before.
[[nodiscard]] std::unique_ptr<Device> open_device(int n_threads);

/// The accelerator in use, by the library of its vendor; `n_threads` of the host compile for it while executors are
/// made. `tunes`: what is fastest there is chosen anew and among more, which takes minutes, and kept. Throws
/// core::Error (usage) if this program is built without.
[[nodiscard]] std::unique_ptr<Device> open_accelerated_device(int n_threads, bool tunes = false);

/// What this program lacks for that; empty if nothing.
[[nodiscard]] std::string_view lacking_for_acceleration() noexcept;

}  // namespace lockstep::nn
