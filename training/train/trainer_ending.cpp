// How a run ends: stopped or failed, with what it saves then; or goes back to a checkpoint instead.
#include <csignal>
#include <utility>

#include "checkpoint/folder.hpp"
#include "runtime/interrupt.hpp"
#include "training/train/trainer.hpp"

namespace lockstep::training {

// Whether to stop: after a signal, by the clock of rank 0, or because rank 0's folder is gone, which is then reported.
bool Trainer::is_stop_asked() const {
  const bool is_lost = run_.is_place_lost() && !options_.evaluate_only;
  return runtime::pending_interrupt() != 0 || (world_.rank() == 0 && (limit_.is_near() || is_lost));
}

// Collective, when all ranks know that one must stop.
void Trainer::stop() {
  const int signal = runtime::agree_on_interrupt(world_);
  const bool may_go_on = signal != SIGINT && setup_.batches.training;  // with Ctrl-C the user wants to end it for good
  ending_ = {.status = RunStatus::stopped,
             .message = signal != 0 ? runtime::describe_signal(signal) : "its time limit is near",
             .exit_code = may_go_on ? core::to_int(core::ExitCode::requeue) : 128 + signal};
}

// Collective.
void Trainer::save_last() {
  std::optional<runtime::HoldRepeats> hold;
  if (ending_.exit_code == core::to_int(core::ExitCode::requeue)) hold.emplace();
  saver_.finish();
  if (const auto failure = saver_.save_last(snapshot(), ending_.status == RunStatus::stopped)) fail_once(*failure);
}

// Collective: parameters and states are still those from before that step.
void Trainer::keep_bad_step() {
  const BadStep bad = divergence_.gather_bad_step(state_);
  state_.n_steps = state_.n_agreed;
  state_.samples_seen =
      state_.epoch * n_epoch_samples(recipe_, *setup_.batches.training, world_.n_ranks()) + state_.of_epoch.n_samples;
  if (const auto lost = saver_.save_bad_step(state_, bad)) fail_once(*lost);
}

// Collective: goes back to the newest checkpoint from before parameters changed. Returns false, and the run fails, if
// there is none.
bool Trainer::roll_back() {
  saver_.finish();
  watchdog_.enter(runtime::Activity::setup, saver_.time_for_disk());
  const core::Error change = divergence_.take_change();
  const auto from = divergence_.find_sound(change, checkpoint::checkpoints_in(run_.folder()), state_.n_steps, resumed_);
  if (!from) {
    fail_once(change);
    return false;
  }
  go_on_from(*from);
  resumed_->why = change.problem().what;
  interval_.restart(position());
  run_.tell(&Observer::went_back, *resumed_);
  return true;
}

// Collective: the run fails, for a reason that is the same on all ranks; one rank reports it.
void Trainer::fail_once(const core::Error& error) {
  static_cast<void>(session_.agree(world_.rank() == 0 ? std::optional{error} : std::nullopt));
  ending_ = {.status = RunStatus::failed, .message = error.problem().what, .exit_code = core::to_int(error.code())};
}

// Collective.
void Trainer::finish() {
  FinalRecord record = final_record();
  run_.tell(&Observer::ending, record);
  run_.tell(&Observer::ended, std::as_const(record));
}

// Collective, at the end.
int Trainer::exit_code() const {
  if (saver_.is_place_lost()) return ending_.exit_code;
  const auto bad = session_.agree(run_.complaint());
  return bad && ending_.exit_code == 0 ? core::to_int(*bad) : ending_.exit_code;
}

}  // namespace lockstep::training
