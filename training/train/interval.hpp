// The steps since the last progress report, and when the next one is due.
// Invariant: all ranks report after the same steps.
// Used by the trainer.
#pragma once

#include <cstdint>
#include <optional>

#include "metrics/phase_timers.hpp"
#include "metrics/step_statistics.hpp"
#include "parallel/control_word.hpp"
#include "runtime/communicator.hpp"
#include "runtime/topology.hpp"
#include "training/run/record.hpp"
#include "training/train/state.hpp"

namespace lockstep::training {

class Interval {
 public:
  /// Both must outlive it.
  Interval(const runtime::Communicator& world, const runtime::Topology& topology)
      : world_{world}, topology_{topology} {}

  /// Adds a step. `lap`: the result of PhaseTimers::lap() at its end. `n_samples` counts all ranks.
  void add(const metrics::PhaseTimes& lap, std::uint64_t n_samples) { steps_.add(lap, n_samples); }
  /// Adds what all ranks know of a step.
  void add(const parallel::StepAgreement& agreed) noexcept { agreed_.add(agreed); }

  /// Never true before the loss of a step is known.
  [[nodiscard]] bool is_due(std::uint64_t n_steps) const noexcept {
    return next_report_ > 0 && n_steps >= next_report_ && agreed_.n_steps > 0;
  }
  /// Collective: after the first step, which includes all the time so far.
  void begin(const Position& at);
  /// Collective: forgets all steps so far, for a run that went back to `at`.
  void restart(const Position& at);
  /// Collective: returns the report on rank 0, nothing elsewhere, and begins a new interval.
  [[nodiscard]] std::optional<TrainRecord> report(const Position& at, double learning_rate, const Goal& goal);

 private:
  void forget(const Position& at) noexcept;
  void plan(std::uint64_t n_steps, double step_s, double most_steps);

  const runtime::Communicator& world_;
  const runtime::Topology& topology_;
  metrics::StepStatistics steps_{1};  ///< leaves out only the first step, because progress is reported early
  AgreedSums agreed_{};
  std::uint64_t first_epoch_ = 1;
  std::uint64_t next_report_ = 0;
};

}  // namespace lockstep::training
