// When and where a trainer saves checkpoints and weights.
#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/folder.hpp"
#include "core/log.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/together.hpp"
#include "training/train/trainer.hpp"

namespace lockstep::training {

// With --resume auto its end is one, too, so that a run which is through is known to be.
bool Trainer::saves_checkpoints() const noexcept {
  return setup_.save_interval > 0 || setup_.save_time.value > 0 || options_.resume == "auto";
}

bool Trainer::is_save_due() const noexcept {
  const std::uint64_t interval = setup_.save_interval;
  return is_save_asked_ || (interval > 0 && state_.samples_seen / interval > saved_at_ / interval);
}

// Collective: when training is over, by itself or by a signal. Weights may have room where a checkpoint has none.
void Trainer::save_last() {
  const bool is_stopped = ending_.status == RunStatus::stopped;
  const bool is_wanted = is_stopped || saves_checkpoints();
  std::optional<runtime::HoldRepeats> hold;
  if (ending_.exit_code == core::to_int(core::ExitCode::requeue)) hold.emplace();
  std::optional<core::Error> unsaved;
  const bool is_there = state_.samples_seen == saved_at_ && (is_kept_here_ || !resumed_);
  if (is_wanted && !is_there) unsaved = save_checkpoint(!is_stopped && is_save_due());
  watchdog_.enter(runtime::Activity::save);
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::save};
  learner_.average_statistics();
  const auto complaint = core::complaint_of(
      [this] { runtime::together(world_, [this] { world_.rank() == 0 ? save_weights() : void(); }); });
  if (!unsaved) unsaved = complaint;
  if (!unsaved) return;
  static_cast<void>(session_.agree(world_.rank() == 0 ? unsaved : std::nullopt));  // told once
  ending_ = {.status = RunStatus::failed,
             .message = unsaved->problem().what,
             .exit_code = core::to_int(core::ExitCode::system)};
}

// Collective: why there is none, the same on all ranks, if there is none. `is_due`: by the recipe's interval.
std::optional<core::Error> Trainer::save_checkpoint(bool is_due) {
  watchdog_.enter(runtime::Activity::save);
  const core::Stopwatch watch;
  timers_.begin(metrics::Phase::save);
  const auto complaint = core::complaint_of([this] { write_checkpoint(); });
  timers_.end();
  watchdog_.enter(runtime::Activity::training);
  is_save_asked_ = false;
  since_saved_ = {};
  if (complaint) return complaint;
  limit_.saved(watch.elapsed());
  saved_at_ = state_.samples_seen;
  is_kept_here_ = true;
  if (world_.rank() == 0)
    run_.tell(&Observer::saved,
              SaveRecord{.at = position(), .path = checkpoint_path(), .is_due = is_due, .time = watch.elapsed()});
  return std::nullopt;
}

// Collective, while training goes on: a run is worth more than one of its checkpoints.
void Trainer::save_in_between() {
  const auto complaint = save_checkpoint(true);
  if (!complaint) return;
  saved_at_ = state_.samples_seen;  // the next is due as if this one were there
  if (world_.rank() == 0)
    core::log_warning(fmt::format("no checkpoint after step {}: {}; training goes on, and {}", state_.n_steps,
                                  complaint->problem().what, "the checkpoints before stay"));
}

// Collective. Throws the same on all ranks.
void Trainer::write_checkpoint() try {
  RunState kept = state_;
  if (is_epoch_over_) kept.begin_next_epoch();
  const std::string path = world_.rank() == 0 ? checkpoint_path() : "";
  learner_.save_checkpoint(path, checkpoint_content(recipe_, epochs_, kept));
  if (world_.rank() == 0) checkpoint::remove_older(path, options_.keep);
} catch (const core::Error& error) {
  throw core::Error{
      core::ExitCode::system,
      {.what = fmt::format("a checkpoint cannot be written: {}", error.problem().what),
       .fix = "make room, or name another place with --run-dir; --resume goes on from the checkpoint before"}};
}

std::string Trainer::checkpoint_path() const {
  return fmt::format("{}/{}", checkpoint::checkpoints_in(run_.folder()), checkpoint::name_of(state_.n_steps));
}

// On rank 0.
void Trainer::save_weights() const try {
  learner_.save(run_.weights_path(),
                {.model = recipe_.model, .epoch = position().epoch, .samples_seen = state_.samples_seen}, "");
} catch (const core::Error& error) {
  throw core::Error{
      core::ExitCode::system,
      {.what = fmt::format("weights cannot be saved to '{}': {}", run_.weights_path(), error.problem().what),
       .fix = "make room, or name another place with --save-weights"}};
}

}  // namespace lockstep::training
