// The time of a training step, and the resulting samples per second.
// Invariant: the steady state only: without the first steps, evaluation and saving; the time of a step is that of its
// slowest rank; rates are samples over time, never means of rates.
// Used by the trainer: one for each progress interval, one for the whole run.
#pragma once

#include <cstdint>
#include <optional>

#include "core/statistics.hpp"
#include "metrics/even_sample.hpp"
#include "metrics/phase_timers.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::metrics {

struct StepSummary {
  std::uint64_t n_steps = 0;    ///< timed ones
  std::uint64_t n_samples = 0;  ///< of all ranks, in these steps
  core::Seconds time{};         ///< of these steps, on the rank for which they took longest
  core::Summary step_s{};       ///< of at most StepStatistics' `most_kept` of these steps, evenly spaced

  [[nodiscard]] double samples_per_s() const noexcept {
    return time.value > 0 ? static_cast<double>(n_samples) / time.value : 0;
  }
};

class StepStatistics {
 public:
  /// `most_kept` is even: the number of steps that a rank sends in reduce().
  explicit StepStatistics(std::uint64_t n_warmup_steps, std::size_t most_kept = 1024);

  /// Adds a step. `lap`: the result of PhaseTimers::lap() at its end. `n_samples` counts all ranks. Allocates nothing.
  void add(const PhaseTimes& lap, std::uint64_t n_samples);
  /// Forgets all timed steps; does not repeat the warm-up.
  void clear() noexcept;

  /// The number of timed steps on this rank, and their phases.
  [[nodiscard]] std::uint64_t n_steps() const noexcept { return n_steps_; }
  [[nodiscard]] const PhaseTimes& phases() const noexcept { return phases_; }

  /// Collective, with the same steps on all ranks: at rank 0 the summary, nothing elsewhere or if no step was timed.
  [[nodiscard]] std::optional<StepSummary> reduce(const runtime::Communicator& world) const;

 private:
  std::uint64_t n_warmup_steps_;
  std::uint64_t n_steps_ = 0;
  std::uint64_t n_samples_ = 0;
  PhaseTimes phases_{};
  EvenSample kept_s_;
};

}  // namespace lockstep::metrics
