// The network, its parameters and what changes them: one rank's part of data-parallel training.
// Invariant: between two calls of step() all ranks have the same parameters; how a batch is split over ranks, lanes and
// parts changes the order of sums only, and with `deterministic` not even that.
// Used by the trainer and by evaluate.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport.hpp"
#include "core/units.hpp"
#include "metrics/phase_timers.hpp"
#include "nn/executor.hpp"
#include "nn/network.hpp"
#include "parallel/control_word.hpp"
#include "parallel/lanes.hpp"
#include "parallel/synchronizer.hpp"
#include "runtime/communicator.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/weights.hpp"
#include "training/train/batches.hpp"
#include "training/train/group_sum.hpp"

namespace lockstep::training {

class Learner {
 public:
  /// Collective. `most`: samples of a batch of this rank, at most; the transport must outlive it. `on_progress`: called
  /// after each layer of each pass.
  Learner(const runtime::Communicator& world, comm::Transport& transport, const Recipe& recipe, nn::Network network,
          std::uint64_t most, metrics::PhaseTimers& timers, std::function<void()> on_progress = {});

  /// Collective: parameters as the seed says, or those of a weights file.
  void initialize(const std::string& weights_file);

  /// Collective, also for ranks without samples: forward and backward of all of `batch`. The gradient is that of the
  /// mean over the global batch. What there is to report of the step: its sums, and whether they are finite.
  parallel::StepReport compute_gradients(const data::Batch& batch, std::uint64_t epoch);
  /// Collective: sums the gradients of all ranks and updates the parameters. Returns Synchronizer::replica_hash().
  std::optional<std::uint32_t> update(double lr);
  /// Local: loss and right answers by running statistics, without dropout.
  nn::LossSums evaluate(const data::Batch& batch);
  /// Collective: running statistics become the mean over the ranks, or over the lanes; ranks count by their `weight`.
  void average_statistics(std::uint64_t weight = 1);

  /// Rank 0: whole files only.
  void save(const std::string& path, const WeightsInfo& info, std::string_view flag) const;
  /// Of parameters and running statistics.
  [[nodiscard]] std::string digest() const;

  /// Where the first NaN or infinity was met, by the pass whose loss was not finite; empty if all were.
  [[nodiscard]] const std::string& not_finite_in() const noexcept { return not_finite_in_; }
  [[nodiscard]] parallel::Synchronizer& synchronizer() noexcept { return *synchronizer_; }
  /// Passes through the network in a step.
  [[nodiscard]] std::uint64_t n_calls() const noexcept {
    return recipe_.accumulate * (lanes_ ? static_cast<std::uint64_t>(lanes_->n_local()) : 1);
  }
  [[nodiscard]] const nn::Network& network() const noexcept { return network_; }
  [[nodiscard]] nn::Executor& executor() noexcept { return *executor_; }

 private:
  [[nodiscard]] std::string find_not_finite() const;
  nn::LossSums run_all(const data::Batch& batch, std::uint64_t epoch);
  nn::LossSums run_lanes(const data::Batch& batch, std::uint64_t epoch);
  nn::LossSums run_parts(const data::Batch& batch, float scale, std::uint64_t epoch, bool is_last);
  void copy_statistics(std::span<float> to) const;
  void set_statistics(std::span<const float> from);
  [[nodiscard]] std::span<float> slot(std::span<float> arena, int parameter) const;
  void fill(std::size_t tensor, std::span<float> values) const;
  void take(std::size_t tensor, std::span<const float> values);

  const runtime::Communicator& world_;
  const Recipe& recipe_;
  metrics::PhaseTimers& timers_;
  nn::Network network_;
  std::vector<TensorSpec> tensors_;
  std::uint64_t at_a_time_;
  std::optional<GroupSum> group_sum_{};
  std::unique_ptr<nn::Executor> executor_;
  std::unique_ptr<parallel::Synchronizer> synchronizer_;
  std::optional<parallel::Lanes> lanes_{};
  /// Running statistics of each lane of this rank, one lane after another; of the rank itself without lanes. Kept apart as
  /// their mean would else depend on the number of ranks.
  std::vector<float> statistics_{};
  std::size_t n_statistics_ = 0;
  std::vector<nn::ArenaSlot> slot_of_;  ///< by parameter
  std::vector<double> lane_losses_{};
  std::string not_finite_in_{};
};

}  // namespace lockstep::training
