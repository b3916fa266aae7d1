// The time of a step, layer by layer, and how far each layer is from the machine's limit.
// Invariant: limits are measured in the same run by the same executor, on all ranks at once; times are means over
// ranks.
// Used by training/run/run for --profile, and by the dry run, which needs limits.
#pragma once

#include <cstdint>
#include <optional>

#include "nn/device.hpp"
#include "nn/executor.hpp"
#include "nn/graph/network.hpp"
#include "runtime/communicator.hpp"
#include "training/run/observer.hpp"

namespace lockstep::training {

/// Collective: this rank's limits while all ranks work; takes about half a second on a host. `options`: their `agree`
/// makes all ranks compute alike.
[[nodiscard]] MachineLimits measure_limits(const runtime::Communicator& world, nn::Device& device,
                                           nn::ExecutorOptions options);

/// For one sample, forward and backward.
[[nodiscard]] double multiply_adds_of_step(const nn::Network& network);

/// Watches steps of training, from the first after the warm-up to the end of its epoch.
class Profiler final : public Observer {
 public:
  /// All except `options` must outlive it.
  Profiler(const runtime::Communicator& world, nn::Device& device, const nn::Network& network,
           const nn::ExecutorOptions& options, nn::Executor& executor);

  void step_begun(std::uint64_t n_made) override;
  void step_made(const StepWork& work) override;
  void steps_over() override;
  void ending(FinalRecord& record) override;

 private:
  const runtime::Communicator& world_;
  nn::Device& device_;
  const nn::Network& network_;
  nn::ExecutorOptions options_;
  nn::Executor& executor_;
  bool is_running_ = false;
  std::uint64_t n_steps_ = 0, n_samples_ = 0, n_calls_ = 0;
  double step_s_ = 0;                      ///< of the watched steps together
  std::optional<ProfileReport> report_{};  ///< at rank 0
};

}  // namespace lockstep::training
