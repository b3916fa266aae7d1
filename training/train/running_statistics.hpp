// Running statistics of batch normalization on one rank: a row of all channels for each of its lanes, or one row.
// Invariant: rows stay separate while they are trained, because their mean would depend on the number of ranks. Without
// lanes the executor has the current row.
// Used by the learner; evaluations and saves use the mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/box.hpp"
#include "checkpoint/reader.hpp"
#include "comm/transport.hpp"
#include "metrics/phase_timers.hpp"
#include "nn/executor.hpp"
#include "nn/graph/network.hpp"
#include "parallel/group_sum.hpp"
#include "runtime/communicator.hpp"
#include "training/recipe/recipe.hpp"

namespace lockstep::training {

class RunningStatistics {
 public:
  /// Collective. All references must outlive it.
  RunningStatistics(const runtime::Communicator& world, comm::Transport& transport, const Recipe& recipe,
                    const nn::Network& network, nn::Executor& executor, metrics::PhaseTimers& timers);

  /// Local: sets each row to what the executor has.
  void start();
  /// Local, around a pass with lane `local` of this rank: gives the lane's row to the executor, and takes it back.
  void begin_lane(std::size_t local) { give(row(local)); }
  void end_lane(std::size_t local) { take(row(local)); }

  /// Local, before a step that may be skipped. Does nothing if a device keeps them (EnqueuedSteps::keep_statistics()).
  void keep();
  /// Local: sets them back to what they were at keep().
  void restore();

  /// Collective: gives the executor the mean over all ranks, weighted by each rank's `weight`, or over all lanes.
  /// Without lanes training continues from the mean, unless use_own() follows.
  void use_mean(std::uint64_t weight = 1) { give(average(weight)); }
  /// Local: gives the executor those that this rank has trained.
  void use_own() { give(row(0)); }

  /// A statistic in a checkpoint.
  struct Saved {
    checkpoint::Box box{};  ///< a row for each lane or rank, or one for their mean
    std::vector<float> values{};
  };
  /// Collective: all statistics, on rank 0 only. In a deterministic run by lane, or by rank without lanes; otherwise
  /// the mean.
  [[nodiscard]] std::vector<Saved> gather();
  /// Local: each lane or rank gets its own row if the checkpoint has as many, else the mean of its rows.
  void load(const checkpoint::Checkpoint& from);

 private:
  [[nodiscard]] std::span<float> row(std::size_t i) { return std::span{rows_}.subspan(i * n_channels_, n_channels_); }
  void take_current();
  void take(std::span<float> to);
  void give(std::span<const float> from);
  [[nodiscard]] std::vector<float> average(std::uint64_t weight);

  const runtime::Communicator& world_;
  const nn::Network& network_;
  nn::Executor& executor_;
  metrics::PhaseTimers& timers_;
  parallel::HostGroupSum world_sum_;
  bool is_deterministic_;
  bool has_lanes_;
  std::size_t n_rows_;
  std::size_t n_channels_ = 0;  ///< of all statistics
  std::vector<float> rows_{};
  std::vector<float> before_{};  ///< the current step
};

}  // namespace lockstep::training
