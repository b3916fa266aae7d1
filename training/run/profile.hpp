// Where the time of a step goes, layer by layer, and how far each layer is from what the machine can do.
// Invariant: limits are measured in the same run by the same executor, on all ranks at once; times are means over ranks.
// Used by the trainer for --profile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/executor.hpp"
#include "nn/network.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::training {

/// What one rank reaches while all ranks are at work.
struct MachineLimits {
  double gflops = 0;       ///< of oneDNN: a product of matrices of 1024x1024
  double memory_GBps = 0;  ///< read and written: a ReLU of 64 MiB
};

/// Local: takes about half a second. Call it on all ranks at once.
[[nodiscard]] MachineLimits measure_limits(nn::ExecutorOptions options);

struct LayerProfile {
  std::string layer{};
  double forward_ms = 0;  ///< of a step
  double backward_ms = 0;
  double gflops = 0;
  double limit_ms = 0;  ///< what the limit would take for both
  bool is_compute_bound = false;
};

struct ProfileReport {
  MachineLimits limits{};
  std::uint64_t n_steps = 0;
  double step_ms = 0;                  ///< mean over steps and ranks
  std::vector<LayerProfile> layers{};  ///< in forward order
};

/// Watches steps of training, from start() to stop(). Does nothing unless the executor is one of the host.
class Profiler {
 public:
  Profiler(const nn::Network& network, const nn::ExecutorOptions& options, nn::Executor& executor);

  void start();
  /// A step of so many samples of this rank, in `n_calls` calls of the executor.
  void add(std::uint64_t n_samples, std::uint64_t n_calls) noexcept;
  [[nodiscard]] bool is_running() const noexcept { return is_running_; }
  /// Collective, with the same steps on all ranks. `step_s`: of all watched steps together, on this rank.
  void stop(const runtime::Communicator& world, double step_s);
  /// At rank 0 after stop(); nothing before.
  [[nodiscard]] const std::optional<ProfileReport>& report() const noexcept { return report_; }

 private:
  const nn::Network& network_;
  nn::ExecutorOptions options_;
  nn::Executor& executor_;
  bool is_running_ = false;
  std::uint64_t n_steps_ = 0, n_samples_ = 0, n_calls_ = 0;
  std::optional<ProfileReport> report_{};
};

/// A table of the layers, their sums, and what the limits are.
[[nodiscard]] std::string profile_text(const ProfileReport& report);
/// Line of log.jsonl, without its newline.
[[nodiscard]] std::string to_line(const ProfileReport& report);

}  // namespace lockstep::training
