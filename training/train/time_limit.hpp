// How much time a run has left, and when it must save to finish before the batch system ends it.
// Invariant: uses the clock and measurements of this run; before any measurement, a cautious guess.
// Used by the trainer, on rank 0: the others learn it through the control word.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/clock.hpp"
#include "core/units.hpp"

namespace lockstep::training {

inline constexpr core::Seconds time_for_answer{20};  ///< of a batch system, at most

/// Returns the time left of the batch job at the date of `clock`. Slurm: from SLURM_JOB_END_TIME, seconds since 1970,
/// if its version sets that (22.05.8 does not), otherwise from squeue. PBS: from qstat. Warns if these do not report
/// it. Returns nothing outside of jobs, or if the job is over (a shell may outlive its job).
[[nodiscard]] std::optional<core::Seconds> time_left_of_job(const core::Clock& clock);

/// Reads the output of `squeue --format %L` for one job: infinity if it has no limit; nothing if it is not a time.
[[nodiscard]] std::optional<core::Seconds> time_left_by_squeue(std::string_view text);

/// Reads `qstat -f` for one job of OpenPBS, PBS Pro or Torque, at `now` (seconds since 1970): the rest of the requested
/// walltime since the job's start, in this machine's time zone. Nothing if either is missing.
[[nodiscard]] std::optional<core::Seconds> time_left_by_qstat(std::string_view text, std::int64_t now);

class TimeLimit {
 public:
  /// `left` counts from now, by `clock`, which must outlive it; nothing: no limit.
  TimeLimit(std::optional<core::Seconds> left, const core::Clock& clock) noexcept : left_{left}, since_{clock} {}

  [[nodiscard]] bool is_known() const noexcept { return left_.has_value(); }
  /// The time left; 0 or less if it is over.
  [[nodiscard]] core::Seconds left() const noexcept { return {left_->value - since_.elapsed().value}; }

  /// The time of a first save: a checkpoint and weights.
  void expect(core::Bytes to_save) noexcept { saved({static_cast<double>(to_save.value) / slow_bytes_per_s}); }
  void step_made(core::Seconds time) noexcept { step_.value = std::max(step_.value, time.value); }
  void saved(core::Seconds time) noexcept { save_.value = std::max(save_.value, time.value); }

  /// The time to reserve for the end: a save may take twice as long as the longest so far, and the run reacts to a stop
  /// one step late.
  [[nodiscard]] core::Seconds reserve() const noexcept { return {2 * save_.value + 3 * step_.value + margin.value}; }
  /// Whether this is the last moment to stop with a checkpoint.
  [[nodiscard]] bool is_near() const noexcept { return is_known() && left() <= reserve(); }

 private:
  static constexpr core::Seconds margin{2};          ///< for the end of MPI, and of the launcher
  static constexpr double slow_bytes_per_s = 100e6;  ///< the rate that a busy parallel file system gives one process

  std::optional<core::Seconds> left_;
  core::Timer since_;
  core::Seconds step_{};
  core::Seconds save_{};
};

}  // namespace lockstep::training
