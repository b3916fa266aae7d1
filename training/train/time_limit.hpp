// How long a run may still take, and when it has to save so as not to be ended by the batch system.
// Invariant: what is told is the clock's and what was measured in this run; before anything was, a cautious guess.
// Used by the trainer, on rank 0: the others are told through the control word.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/clock.hpp"
#include "core/units.hpp"

namespace lockstep::training {

inline constexpr core::Seconds time_for_answer{20};  ///< of a batch system, at most

/// Left of the batch job. Slurm: by SLURM_JOB_END_TIME, seconds since 1970, where its version sets that (22.05.8 does
/// not), else as squeue tells. PBS: as qstat tells. A warning if that tells nothing. Nothing outside of jobs, or if it
/// is over (a shell may outlive its job).
[[nodiscard]] std::optional<core::Seconds> time_left_of_job();

/// Of what `squeue --format %L` prints of one job: infinity if it has no limit; nothing if it is no time.
[[nodiscard]] std::optional<core::Seconds> time_left_by_squeue(std::string_view text);

/// Of `qstat -f` of one job of OpenPBS, PBS Pro or Torque, at `now` (seconds since 1970): the walltime asked for, since
/// the job's start, in this machine's time zone; nothing if either is missing.
[[nodiscard]] std::optional<core::Seconds> time_left_by_qstat(std::string_view text, std::int64_t now);

class TimeLimit {
 public:
  /// `left` from now on, by `clock`, which must outlive it; nothing: for ever.
  TimeLimit(std::optional<core::Seconds> left, const core::Clock& clock) noexcept : left_{left}, since_{clock} {}

  [[nodiscard]] bool is_known() const noexcept { return left_.has_value(); }
  /// What is left; not above 0 if it is over.
  [[nodiscard]] core::Seconds left() const noexcept { return {left_->value - since_.elapsed().value}; }

  /// Of a first save: a checkpoint and weights.
  void expect(core::Bytes to_save) noexcept { saved({static_cast<double>(to_save.value) / slow_bytes_per_s}); }
  void step_made(core::Seconds time) noexcept { step_.value = std::max(step_.value, time.value); }
  void saved(core::Seconds time) noexcept { save_.value = std::max(save_.value, time.value); }

  /// What to keep for the end: a save may take twice as long as the longest so far, and a stop is acted on one step
  /// late.
  [[nodiscard]] core::Seconds reserve() const noexcept { return {2 * save_.value + 3 * step_.value + margin.value}; }
  /// Whether this is the last moment to stop, with a checkpoint.
  [[nodiscard]] bool is_near() const noexcept { return is_known() && left() <= reserve(); }

 private:
  static constexpr core::Seconds margin{2};          ///< for the end of MPI, and of the launcher
  static constexpr double slow_bytes_per_s = 100e6;  ///< what a busy parallel file system gives one process

  std::optional<core::Seconds> left_;
  core::Timer since_;
  core::Seconds step_{};
  core::Seconds save_{};
};

}  // namespace lockstep::training
