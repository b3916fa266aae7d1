// All that a run saves: checkpoints in between and at its end, weights, and steps that were not finite.
// Invariant: all ranks save at the same steps. A failed save in between does not end the run, which is worth more than
// one of its checkpoints.
// Used by the trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/writer.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "metrics/phase_timers.hpp"
#include "parallel/control_word.hpp"
#include "runtime/communicator.hpp"
#include "runtime/watch/watchdog.hpp"
#include "training/run/run.hpp"
#include "training/train/resume.hpp"
#include "training/train/setup.hpp"
#include "training/train/state.hpp"
#include "training/train/time_limit.hpp"

namespace lockstep::training {

/// What is saved of a run besides tensors.
struct Snapshot {
  Position at{};
  RunState state{};  ///< to resume from
};

class Saver {
 public:
  /// What a saver works with; all must outlive it.
  struct Scene {
    const runtime::Communicator& world;
    const Recipe& recipe;
    const RunOptions& options;
    const Setup& setup;
    const Epochs& epochs;
    Run& run;
    TimeLimit& limit;
    metrics::PhaseTimers& timers;
    runtime::Watchdog& watchdog;
    const core::Clock& clock;
  };
  explicit Saver(const Scene& scene)
      : scene_{scene}, world_{scene.world}, learner_{*scene.setup.learner}, since_saved_{scene.clock} {}

  /// Whether the run saves checkpoints, also at its end.
  [[nodiscard]] bool saves_checkpoints() const noexcept;
  /// Whether one is due after this many samples.
  [[nodiscard]] bool is_due(std::uint64_t samples_seen) const noexcept {
    return is_name_due_ || is_interval_over(samples_seen);
  }
  /// Time for a disk, or for a remote file system, is not a stall, although no rank makes progress while all wait.
  [[nodiscard]] core::Seconds time_for_disk() const;
  /// Whether the state that the run began with is saved in its folder, or needs no checkpoint.
  [[nodiscard]] bool is_kept_here() const noexcept { return is_kept_here_; }
  /// The folder of the run was renamed or removed: reported, and nothing more is written.
  [[nodiscard]] bool is_place_lost() const noexcept { return is_place_lost_; }

  /// What this rank reports of saving in a control word.
  void add_to(parallel::StepReport& report) const;
  /// Collective: proceeds by what all ranks have reported.
  void proceed(const parallel::StepAgreement& agreement);
  /// After an epoch and its evaluation: `kept` may have a name, as the best so far.
  void note_epoch(const RunState& kept);
  /// Collective: the run continues from checkpoint `from`.
  void continue_from(const std::string& from, const RunState& state);

  /// Collective, after finish(): begins a checkpoint while training continues. Returns why the run must fail.
  [[nodiscard]] std::optional<core::Error> save_in_between(const Snapshot& snapshot);
  /// Collective: completes a checkpoint that was begun.
  void finish();
  /// Collective, after finish(), when training is over, normally or by a signal: a checkpoint, if one is wanted, and
  /// weights, which may fit where a checkpoint does not. Returns why the run must fail.
  [[nodiscard]] std::optional<core::Error> save_last(const Snapshot& snapshot, bool is_stopped);
  /// Collective: keeps `state` and the step after it for --replay. Returns why the run must fail.
  [[nodiscard]] std::optional<core::Error> save_bad_step(const RunState& state, const BadStep& bad);

 private:
  /// A checkpoint that is being written.
  struct Saving {
    SaveRecord record{};
    std::vector<std::string> names{};
    core::Timer watch;
    std::unique_ptr<checkpoint::BackgroundSave> writer{};  ///< if it is in the background
  };

  [[nodiscard]] bool saves_in_between() const noexcept;
  [[nodiscard]] bool is_interval_over(std::uint64_t samples_seen) const noexcept;
  [[nodiscard]] std::vector<std::string> names_of(const RunState& kept) const;
  [[nodiscard]] std::string path_of(const RunState& state) const;
  [[nodiscard]] std::string content_of(RunState kept, const BadStep* bad = nullptr);
  [[nodiscard]] std::optional<core::Error> find_place_lost();
  [[nodiscard]] Saving begin(const Snapshot& snapshot, bool is_due);
  void end(Saving& saving);
  std::optional<core::Error> while_standing(Saving& saving, const std::function<void()>& work);
  [[nodiscard]] std::optional<core::Error> save_now(const Snapshot& snapshot, bool is_due);
  void advance();
  void tell_unsaved(const Saving& saving, const core::Error& why) const;
  void save_weights(const Snapshot& snapshot) const;

  const Scene scene_;
  const runtime::Communicator& world_;
  Learner& learner_;
  std::uint64_t saved_at_ = 0;          ///< samples seen when the last checkpoint was begun or resumed
  std::uint64_t kept_at_ = 0;           ///< samples seen when the last complete one was begun
  std::optional<Saving> saving_{};      ///< in the background
  std::set<std::string> left_alone_{};  ///< reported as not our checkpoints
  core::Timer since_saved_;             ///< on rank 0, since the begin of the last save
  bool is_save_asked_ = false;          ///< by rank 0's clock, and agreed on
  bool is_name_due_ = false;            ///< for the present state, which no checkpoint has yet
  bool is_kept_here_ = true;
  bool is_place_lost_ = false;
};

}  // namespace lockstep::training
