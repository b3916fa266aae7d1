// When and where a trainer saves checkpoints and weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "checkpoint/folder.hpp"
#include "core/log.hpp"
#include "core/shortage.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/together.hpp"
#include "training/train/trainer.hpp"

namespace lockstep::training {

// With --resume auto the last state is also a checkpoint, so that a finished run is recognised.
bool Trainer::saves_checkpoints() const noexcept { return saves_in_between() || options_.resume == "auto"; }

bool Trainer::saves_in_between() const noexcept {
  return setup_.save_interval > 0 || setup_.save_time.value > 0 || options_.keep_epochs > 0;
}

bool Trainer::is_save_due() const noexcept {
  const std::uint64_t interval = setup_.save_interval;
  return is_save_asked_ || (interval > 0 && state_.samples_seen / interval > saved_at_ / interval);
}

// Collective: when training is over, normally or after a signal. Weights may fit where a checkpoint does not.
void Trainer::save_last() {
  const bool is_stopped = ending_.status == RunStatus::stopped;
  const bool is_wanted = is_stopped || saves_checkpoints();
  std::optional<runtime::HoldRepeats> hold;
  if (ending_.exit_code == core::to_int(core::ExitCode::requeue)) hold.emplace();
  finish_save();
  if (fails_for_place()) return;
  if (const auto ruined = core::complaint_of([&] { learner_.require_finite(); })) return fail_once(*ruined);
  std::optional<core::Error> unsaved;
  const bool is_there = state_.samples_seen == kept_at_ && (is_kept_here_ || !resumed_) && !is_name_due_;
  if (is_wanted && !is_there) unsaved = save_now(!is_stopped && is_save_due());
  watchdog_.enter(runtime::Activity::save, time_for_disk());
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::save};
  learner_.use_mean_statistics();  // until the end, because the digest includes them
  const auto complaint = core::complaint_of(
      [this] { runtime::together(world_, [this] { world_.rank() == 0 ? save_weights() : void(); }); });
  if (!unsaved) unsaved = complaint;
  if (unsaved) fail_once({core::ExitCode::system, unsaved->problem()});
}

// Time for a disk, or for a remote file system, is not a stall, although no rank makes progress while all wait for it.
core::Seconds Trainer::time_for_disk() const {
  constexpr double slow = 25e6;  // bytes per second, for the whole run
  return {std::ceil(static_cast<double>(learner_.checkpoint_bytes().value) / slow)};
}

Trainer::Saving Trainer::begin_save(bool is_due) {
  saved_at_ = state_.samples_seen;  // the next one is due as if this one existed
  is_save_asked_ = is_name_due_ = false;
  since_saved_.restart();
  return {.record = {.at = position(), .path = checkpoint_path(), .is_due = is_due},
          .names = names_of(kept_state()),
          .watch = core::Timer{clock_}};
}

// Collective: the checkpoint is complete.
void Trainer::end_save(Saving& saving) {
  const std::uint64_t n_sound = least_sound_steps();
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::save};
  const core::Timer watch{clock_};
  kept_at_ = saving.record.at.samples_seen;
  is_kept_here_ = true;
  // fails_for_place() tells of another folder in its place, in which nothing is removed.
  if (world_.rank() == 0 && !core::complaint_of([this] { run_.require_place(); })) {
    for (const std::string& name : saving.names) checkpoint::give_name(saving.record.path, name);
    checkpoint::remove_older(saving.record.path, options_.keep, n_sound, left_alone_);
  }
  saving.record.stall.value += watch.elapsed().value;
  saving.record.time = saving.watch.elapsed();
  limit_.saved(saving.record.time);
  if (world_.rank() == 0) run_.tell(&Observer::saved, std::as_const(saving.record));
}

// Pauses training for `work`; returns its error as one about checkpoints.
std::optional<core::Error> Trainer::while_standing(Saving& saving, const std::function<void()>& work) {
  watchdog_.enter(runtime::Activity::save, time_for_disk());
  const core::Timer watch{clock_};
  timers_.begin(metrics::Phase::save);
  const auto complaint = core::complaint_of(work);
  timers_.end();
  watchdog_.enter(runtime::Activity::training);
  saving.record.stall.value += watch.elapsed().value;
  if (!complaint) return std::nullopt;
  // An error about a name already says how to fix it.
  const core::Problem& problem = complaint->problem();
  const bool is_named = complaint->code() == core::ExitCode::usage && !problem.fix.empty();
  const std::string free_space = core::fix_of_limit(problem.what, "free space, or name another folder with --run-dir");
  return core::Error{
      core::ExitCode::system,
      {.what = fmt::format("cannot write a checkpoint: {}", problem.what),
       .fix = fmt::format("{}; --resume continues from the previous checkpoint", is_named ? problem.fix : free_space)}};
}

// Collective: returns why there is no checkpoint, the same on all ranks; nothing if there is one. `is_due`: by the
// recipe's interval.
std::optional<core::Error> Trainer::save_now(bool is_due) {
  Saving saving = begin_save(is_due);
  const std::string content = content_to_save(kept_state());
  const auto complaint = while_standing(saving, [&] { learner_.save_checkpoint(saving.record.path, content); });
  if (!complaint) end_save(saving);
  return complaint;
}

// Collective, while training continues.
void Trainer::save_in_between() {
  finish_save();
  if (fails_for_place()) return;
  saving_ = begin_save(is_save_due());
  const std::string content = content_to_save(kept_state());
  const auto complaint =
      while_standing(*saving_, [&] { saving_->writer = learner_.begin_checkpoint(saving_->record.path, content); });
  if (complaint) {
    tell_unsaved(*saving_, *complaint);
    saving_.reset();
  }
  if (run_.is_in_order()) finish_save();
}

// Collective, when all ranks know that none is busy writing, or all wait for it. A failed save does not end the run,
// which is worth more than one of its checkpoints.
void Trainer::advance_save() {
  bool is_complete = false;
  const auto complaint = while_standing(*saving_, [&] { is_complete = saving_->writer->advance(); });
  if (complaint) tell_unsaved(*saving_, *complaint);
  if (is_complete) end_save(*saving_);
  if (complaint || is_complete) saving_.reset();
}

void Trainer::finish_save() {
  while (saving_) advance_save();
}

// Collective: whether the run has failed because its folder was renamed or removed. It cannot save any more, so
// continuing would lose more.
bool Trainer::fails_for_place() {
  const auto lost = core::complaint_of([this] { runtime::together(world_, [this] { run_.require_place(); }); });
  if (!lost) return false;
  fail_once(*lost);
  is_place_lost_ = true;
  return true;
}

void Trainer::tell_unsaved(const Saving& saving, const core::Error& why) const {
  if (core::complaint_of([this] { run_.require_place(); })) return;  // the reason, which fails_for_place() reports
  if (world_.rank() == 0)
    core::log_warning(fmt::format("no checkpoint after step {}: {}; training continues, and {}", saving.record.at.step,
                                  why.problem().what, "earlier checkpoints stay"));
}

// The state that a checkpoint stores, to resume from.
RunState Trainer::kept_state() const {
  RunState kept = state_;
  if (is_epoch_over_) kept.begin_next_epoch();
  return kept;
}

std::string Trainer::content_to_save(RunState kept, const BadStep* bad) {
  kept.loss_scale = learner_.synchronizer().scale_to_save();
  return checkpoint_content(recipe_, epochs_, kept, bad);
}

std::vector<std::string> Trainer::names_of(const RunState& kept) const {
  std::vector<std::string> names;
  if (kept.best && kept.best->n_steps == kept.n_steps) names.emplace_back("best");
  const bool is_between_epochs = kept.epoch > 0 && kept.of_epoch.n_steps == 0;
  if (is_between_epochs && options_.keep_epochs > 0 && kept.epoch % options_.keep_epochs == 0)
    names.push_back(fmt::format("epoch-{:03}", kept.epoch));
  return names;
}

std::string Trainer::checkpoint_path() const {
  return fmt::format("{}/{}", checkpoint::checkpoints_in(run_.folder()), checkpoint::name_of(state_.n_steps));
}

// On rank 0.
void Trainer::save_weights() const try {
  learner_.save(run_.weights_path(),
                {.model = recipe_.model, .epoch = position().epoch, .samples_seen = state_.samples_seen}, "",
                run_.links_of_weights());
} catch (const core::Error& error) {
  throw core::Error{
      core::ExitCode::system,
      {.what = fmt::format("cannot save weights to '{}': {}", run_.weights_path(), error.problem().what),
       .fix = core::fix_of_limit(error.problem().what, "free space, or name another file with --save-weights")}};
}

}  // namespace lockstep::training
