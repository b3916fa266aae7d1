// The trainer's reaction to numbers that are not finite, to parameters that changed in memory, and to drills.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "checkpoint/content.hpp"
#include "checkpoint/folder.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "runtime/together.hpp"
#include "training/train/bad_step.hpp"
#include "training/train/trainer.hpp"

namespace lockstep::training {

// Collective, for a resumed run. The digest of an index does not tell who has written it, and at the end of the epoch a
// wrong ledger would look like lost samples.
void Trainer::require_ledger(const checkpoint::Checkpoint& from) {
  const bool may_differ = options_.resume_anyway;         // in another order, or from another set
  if (may_differ || recipe_.synthetic_steps > 0) return;  // one batch, repeated
  const std::uint64_t n_steps = state_.of_epoch.n_steps;
  const std::uint64_t mine = setup_.batches.training->ledger_before(state_.epoch, n_steps).hash();
  const std::vector<std::uint64_t> all = runtime::gather_values(world_, std::span{&mine, 1});
  const std::uint64_t ledger =
      runtime::broadcast_value(world_, std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
  runtime::together(world_, [&] {
    if (state_.ledger != ledger)
      core::refuse_field(from.path() + "/index.json", "content.state.ledger", fmt::format("is {}", state_.ledger),
                         fmt::format("{}, after {} step{} of the epoch, with the samples and the order of this run",
                                     ledger, n_steps, n_steps == 1 ? "" : "s"),
                         checkpoint::damaged_fix);
  });
}

// Fails for the first step whose loss is not known to all ranks.
void Trainer::fail_not_finite(const parallel::StepAgreement& agreement) {
  const bool is_loss = !std::isfinite(agreement.loss);
  ending_ = {
      .status = RunStatus::failed,
      .message = fmt::format("the {} of step {} is not finite", is_loss ? "loss" : "gradient", state_.n_agreed + 1),
      .exit_code = core::to_int(core::ExitCode::failed)};
  is_step_bad_ = true;
  if (world_.rank() != *agreement.not_finite) return;
  core::log_error(core::describe(
      {.what = fmt::format("{}, at a learning rate of {:.4g}", ending_.message, state_.rate_of(state_.n_agreed)),
       .where =
           fmt::format("rank {} on {}, first in {}", world_.rank(), runtime::host_name(), learner_.not_finite()->where),
       .expected = "finite numbers",
       .fix = "use a lower --lr, a --warmup or --clip-norm; or check the data"}));
}

// Collective: parameters and states are still those from before that step.
void Trainer::keep_bad_step() {
  BadStep bad{.learning_rate = state_.rate_of(state_.n_agreed)};
  const auto& mine = learner_.not_finite();
  BadStep of_mine;
  if (mine && mine->step == state_.n_agreed)  // others may have found something in later steps
    of_mine.seen.push_back({world_.rank(), runtime::host_name(), mine->where, mine->samples});
  for (const std::string& of_rank : world_.gather(to_json(of_mine)))
    for (const Sighting& sighting : parse_bad_step(of_rank).seen) bad.seen.push_back(sighting);
  state_.n_steps = state_.n_agreed;
  state_.samples_seen =
      state_.epoch * n_epoch_samples(recipe_, *setup_.batches.training, world_.n_ranks()) + state_.of_epoch.n_samples;
  if (fails_for_place()) return;
  const std::string path = fmt::format("{}/bad-{}", run_.folder(), checkpoint::name_of(state_.n_steps + 1));
  watchdog_.enter(runtime::Activity::save, time_for_disk());
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::save};
  const auto complaint = core::complaint_of([&] { learner_.save_checkpoint(path, content_to_save(state_, &bad)); });
  if (world_.rank() != 0) return;
  if (complaint)
    core::log_warning(fmt::format("the step is not kept for --replay: {}", complaint->problem().what));
  else
    core::log_info(fmt::format("to repeat that step on one rank: lockstep train --replay {}", path));
}

// Collective, for parameters that something other than their owners has changed.
void Trainer::note_divergence(const parallel::StepAgreement& agreement) {
  divergence_ = core::complaint_of([&] {
    const parallel::ReplicaGuard& guard = learner_.synchronizer().guard();
    if (agreement.changed) runtime::together(world_, [&] { guard.fail_for_change(); });
    guard.fail_for_replicas();
  });
}

// Collective: goes back to the newest checkpoint from before parameters changed. Returns false, and the run fails, if
// there is none, or if the same happened before without progress since, which is not chance.
bool Trainer::roll_back() {
  finish_save();
  const core::Error why = *std::exchange(divergence_, std::nullopt);
  const bool is_again = diverged_at_ && state_.n_steps <= *diverged_at_;
  diverged_at_ = state_.n_steps;
  std::vector<std::string> paths, set_aside;  // on rank 0
  const std::uint64_t n_sound = least_sound_steps();
  watchdog_.enter(runtime::Activity::setup, time_for_disk());
  runtime::together(world_, [&] {
    if (world_.rank() != 0) return;
    const std::string folder = checkpoint::checkpoints_in(run_.folder());
    set_aside = checkpoint::set_aside_newer(folder, n_sound);
    if (is_again) return;
    paths = checkpoint::list_checkpoints(folder);
    const bool is_other = resumed_ && std::ranges::find(paths, resumed_->from) == paths.end();
    if (is_other && resumed_->at.step <= n_sound) paths.push_back(resumed_->from);
  });
  const auto from = checkpoint::open_first_whole(world_, [&] { return paths; });
  if (world_.rank() == 0) {
    for (const std::string& path : set_aside)
      core::log_warning(fmt::format("checkpoint '{}' may contain the change and was renamed", path));
    if (from)
      core::log_warning(fmt::format("after step {}: {} ({}); going back to {}", state_.n_steps, why.problem().what,
                                    why.problem().where, from->path()));
  }
  if (from) {
    go_on_from(*from);
    resumed_->why = why.problem().what;
    interval_.restart(position());
    run_.tell(&Observer::went_back, *resumed_);
    return true;
  }
  fail_once(why);
  return false;
}

// Returns the minimum over all ranks.
std::uint64_t Trainer::least_sound_steps() const {
  const std::uint64_t mine = setup_.learner->synchronizer().guard().n_sound_steps();
  const std::vector<std::uint64_t> all = runtime::gather_values(world_, std::span{&mine, 1});
  return runtime::broadcast_value(world_, all.empty() ? 0 : std::ranges::min(all));
}

// Collective: the run fails, for a reason that is the same on all ranks; one rank reports it.
void Trainer::fail_once(const core::Error& error) {
  static_cast<void>(session_.agree(world_.rank() == 0 ? std::optional{error} : std::nullopt));
  ending_ = {.status = RunStatus::failed, .message = error.problem().what, .exit_code = core::to_int(error.code())};
}

void Trainer::note_progress() {
  watchdog_.beat();
  if (options_.drill && is_setting_up_) options_.drill->reach(runtime::name(runtime::Activity::setup));
}

// Collective: before the run writes anything.
void Trainer::start_drill() {
  timers_.set_at_end([drill = options_.drill.get()](metrics::Phase phase, core::Seconds time) {
    drill->slow_down(metrics::name(phase), time);
  });
  runtime::together(world_, [&] {
    if (!options_.evaluate_only) options_.drill->require_steps(setup_.goal.n_steps);
    for (const runtime::Fault& fault : options_.drill->named("flip"))
      if (fault.rank == world_.rank()) learner_.require_parameter(fault.parameter);
  });
}

// Before any code reads them in this step.
void Trainer::flip_bits() {
  for (const std::string& parameter : options_.drill->take_flips(state_.n_steps + 1)) learner_.flip_bit(parameter);
}

}  // namespace lockstep::training
