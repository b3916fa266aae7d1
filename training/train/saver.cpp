#include "training/train/saver.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "checkpoint/folder.hpp"
#include "core/log.hpp"
#include "core/shortage.hpp"
#include "runtime/together.hpp"

namespace lockstep::training {

// With --resume auto the last state is also a checkpoint, so that a finished run is recognised.
bool Saver::saves_checkpoints() const noexcept { return saves_in_between() || scene_.options.resume == "auto"; }

bool Saver::saves_in_between() const noexcept {
  return scene_.setup.save_interval > 0 || scene_.setup.save_time.value > 0 || scene_.options.keep_epochs > 0;
}

bool Saver::is_interval_over(std::uint64_t samples_seen) const noexcept {
  const std::uint64_t interval = scene_.setup.save_interval;
  return is_save_asked_ || (interval > 0 && samples_seen / interval > saved_at_ / interval);
}

core::Seconds Saver::time_for_disk() const {
  constexpr double slow = 25e6;  // bytes per second, for the whole run
  return {std::ceil(static_cast<double>(checkpoint_bytes(scene_.recipe, learner_.network()).value) / slow)};
}

void Saver::add_to(parallel::StepReport& report) const {
  const core::Seconds interval = scene_.setup.save_time;
  report.n_saved = saving_ ? saving_->writer->n_done() : 0;
  report.save = world_.rank() == 0 && interval.value > 0 && since_saved_.elapsed() >= interval;
}

void Saver::proceed(const parallel::StepAgreement& agreement) {
  if (saving_ && saving_->writer->may_advance(agreement.n_saved)) advance();
  is_save_asked_ = is_save_asked_ || agreement.save;
}

void Saver::note_epoch(const RunState& kept) { is_name_due_ = saves_in_between() && !names_of(kept).empty(); }

void Saver::continue_from(const std::string& from, const RunState& state) {
  saved_at_ = kept_at_ = state.samples_seen;
  since_saved_.restart();
  is_save_asked_ = is_name_due_ = false;
  is_kept_here_ = scene_.run.has_kept(from);
  if (is_kept_here_ && world_.rank() == 0)  // it may have been killed before it did
    for (const std::string& name : names_of(state)) checkpoint::give_name(path_of(state), name);
}

std::vector<std::string> Saver::names_of(const RunState& kept) const {
  std::vector<std::string> names;
  if (kept.best && kept.best->n_steps == kept.n_steps) names.emplace_back("best");
  const bool is_between_epochs = kept.epoch > 0 && kept.of_epoch.n_steps == 0;
  if (is_between_epochs && scene_.options.keep_epochs > 0 && kept.epoch % scene_.options.keep_epochs == 0)
    names.push_back(fmt::format("epoch-{:03}", kept.epoch));
  return names;
}

std::string Saver::path_of(const RunState& state) const {
  return fmt::format("{}/{}", checkpoint::checkpoints_in(scene_.run.folder()), checkpoint::name_of(state.n_steps));
}

std::string Saver::content_of(RunState kept, const BadStep* bad) {
  kept.loss_scale = learner_.synchronizer().scale_to_save();
  return checkpoint_content(scene_.recipe, scene_.epochs, kept, bad);
}

// Collective: returns an error if the folder of the run was renamed or removed. The run cannot save any more, so
// continuing would lose more.
std::optional<core::Error> Saver::find_place_lost() {
  auto lost = core::complaint_of([this] { runtime::together(world_, [this] { scene_.run.require_place(); }); });
  is_place_lost_ = is_place_lost_ || lost;
  return lost;
}

Saver::Saving Saver::begin(const Snapshot& snapshot, bool is_due) {
  saved_at_ = snapshot.state.samples_seen;  // the next one is due as if this one existed
  is_save_asked_ = is_name_due_ = false;
  since_saved_.restart();
  return {.record = {.at = snapshot.at, .path = path_of(snapshot.state), .is_due = is_due},
          .names = names_of(snapshot.state),
          .watch = core::Timer{scene_.clock}};
}

// Collective: the checkpoint is complete.
void Saver::end(Saving& saving) {
  const std::uint64_t n_sound = learner_.least_sound_steps();
  const metrics::PhaseTimers::Scope scope{scene_.timers, metrics::Phase::save};
  const core::Timer watch{scene_.clock};
  kept_at_ = saving.record.at.samples_seen;
  is_kept_here_ = true;
  // find_place_lost() tells of another folder in its place, in which nothing is removed.
  if (world_.rank() == 0 && !core::complaint_of([this] { scene_.run.require_place(); })) {
    for (const std::string& name : saving.names) checkpoint::give_name(saving.record.path, name);
    checkpoint::remove_older(saving.record.path, scene_.options.keep, n_sound, left_alone_);
  }
  saving.record.stall.value += watch.elapsed().value;
  saving.record.time = saving.watch.elapsed();
  scene_.limit.saved(saving.record.time);
  if (world_.rank() == 0) scene_.run.tell(&Observer::saved, std::as_const(saving.record));
}

// Pauses training for `work`; returns its error as one about checkpoints.
std::optional<core::Error> Saver::while_standing(Saving& saving, const std::function<void()>& work) {
  scene_.watchdog.enter(runtime::Activity::save, time_for_disk());
  const core::Timer watch{scene_.clock};
  scene_.timers.begin(metrics::Phase::save);
  const auto complaint = core::complaint_of(work);
  scene_.timers.end();
  scene_.watchdog.enter(runtime::Activity::training);
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
std::optional<core::Error> Saver::save_now(const Snapshot& snapshot, bool is_due) {
  Saving saving = begin(snapshot, is_due);
  const std::string content = content_of(snapshot.state);
  const auto complaint = while_standing(saving, [&] { learner_.save_checkpoint(saving.record.path, content); });
  if (!complaint) end(saving);
  return complaint;
}

std::optional<core::Error> Saver::save_in_between(const Snapshot& snapshot) {
  if (auto lost = find_place_lost()) return lost;
  saving_ = begin(snapshot, is_interval_over(snapshot.state.samples_seen));
  const std::string content = content_of(snapshot.state);
  const auto complaint =
      while_standing(*saving_, [&] { saving_->writer = learner_.begin_checkpoint(saving_->record.path, content); });
  if (complaint) {
    tell_unsaved(*saving_, *complaint);
    saving_.reset();
  }
  if (scene_.run.is_in_order()) finish();
  return std::nullopt;
}

// Collective, when all ranks know that none is busy writing, or all wait for it.
void Saver::advance() {
  bool is_complete = false;
  const auto complaint = while_standing(*saving_, [&] { is_complete = saving_->writer->advance(); });
  if (complaint) tell_unsaved(*saving_, *complaint);
  if (is_complete) end(*saving_);
  if (complaint || is_complete) saving_.reset();
}

void Saver::finish() {
  while (saving_) advance();
}

std::optional<core::Error> Saver::save_last(const Snapshot& snapshot, bool is_stopped) {
  if (auto lost = find_place_lost()) return lost;
  if (auto ruined = core::complaint_of([&] { learner_.require_finite(); })) return ruined;
  const std::uint64_t samples_seen = snapshot.state.samples_seen;
  const bool is_wanted = is_stopped || saves_checkpoints();
  const bool is_there = samples_seen == kept_at_ && is_kept_here_ && !is_name_due_;
  std::optional<core::Error> unsaved;
  if (is_wanted && !is_there) unsaved = save_now(snapshot, !is_stopped && is_interval_over(samples_seen));
  scene_.watchdog.enter(runtime::Activity::save, time_for_disk());
  const metrics::PhaseTimers::Scope scope{scene_.timers, metrics::Phase::save};
  learner_.statistics().use_mean();  // until the end, because the digest includes them
  const auto mine = core::failure_of([&] { save_weights(snapshot); });
  const auto complaint = core::complaint_of([&] { runtime::fail_together(world_, mine); });
  if (!unsaved) unsaved = complaint;
  if (!unsaved) return std::nullopt;
  return core::Error{core::ExitCode::system, unsaved->problem()};
}

std::optional<core::Error> Saver::save_bad_step(const RunState& state, const BadStep& bad) {
  if (auto lost = find_place_lost()) return lost;
  const std::string path = fmt::format("{}/bad-{}", scene_.run.folder(), checkpoint::name_of(state.n_steps + 1));
  scene_.watchdog.enter(runtime::Activity::save, time_for_disk());
  const metrics::PhaseTimers::Scope scope{scene_.timers, metrics::Phase::save};
  const auto complaint = core::complaint_of([&] { learner_.save_checkpoint(path, content_of(state, &bad)); });
  if (world_.rank() != 0) return std::nullopt;
  if (complaint)
    core::log_warning(fmt::format("the step is not kept for --replay: {}", complaint->problem().what));
  else
    core::log_info(fmt::format("to repeat that step on one rank: lockstep train --replay {}", path));
  return std::nullopt;
}

void Saver::tell_unsaved(const Saving& saving, const core::Error& why) const {
  if (core::complaint_of([this] { scene_.run.require_place(); })) return;  // find_place_lost() reports that reason
  if (world_.rank() == 0)
    core::log_warning(fmt::format("no checkpoint after step {}: {}; training continues, and {}", saving.record.at.step,
                                  why.problem().what, "earlier checkpoints stay"));
}

// Collective. Only rank 0 has the folder of the run.
void Saver::save_weights(const Snapshot& snapshot) const {
  const bool writes = world_.rank() == 0;
  const std::string path = writes ? scene_.run.weights_path() : "";
  const auto failure = core::failure_of([&] {
    learner_.save(path,
                  {.model = scene_.recipe.model, .epoch = snapshot.at.epoch, .samples_seen = snapshot.at.samples_seen},
                  "", writes ? scene_.run.links_of_weights() : core::Links::followed);
  });
  if (!failure) return;
  throw core::Error{
      core::ExitCode::system,
      {.what = fmt::format("cannot save weights{}: {}", writes ? fmt::format(" to '{}'", path) : "",
                           failure->problem().what),
       .fix = core::fix_of_limit(failure->problem().what, "free space, or name another file with --save-weights")}};
}

}  // namespace lockstep::training
