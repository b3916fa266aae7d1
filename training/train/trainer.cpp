#include "training/train/trainer.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "core/log.hpp"
#include "data/load/ledger.hpp"
#include "runtime/interrupt.hpp"
#include "training/recipe/specs.hpp"
#include "training/recipe/words.hpp"
#include "training/train/evaluate.hpp"

namespace lockstep::training {
namespace {

constexpr const char* stopping_text =
    "\nstopping after this step, with a checkpoint; a second signal ends the run at once\n";

}  // namespace

int Trainer::run() try {
  if (const std::string device = to_text(choice_); options_.evaluate_only && !device.empty() && world_.rank() == 0)
    core::log_info(fmt::format("evaluated in {} on {}", word_of(recipe_.precision), device));
  if (options_.evaluate_only)
    evaluate();
  else
    train();
  finish();
  return exit_code();
} catch (const std::exception& error) {
  run_.fail(position(), fmt::format("rank {} on {}: {}", world_.rank(), runtime::host_name(), error.what()));
  throw;
}

void Trainer::train() {
  StartRecord start = start_record(world_, topology_, choice_, recipe_, setup_, run_.folder(), resumed_);
  start.promise = resume_promise(recipe_, world_.n_ranks(), changes_).text;
  if (limit_.is_known()) start.time_left = limit_.left();
  run_.tell(&Observer::started, start);
  if (world_.rank() == 0) runtime::announce_interrupt(stopping_text);
  if (runtime::agree_on_interrupt(world_) != 0) {  // a signal came during the setup
    stop();
    if (!saver_.is_kept_here()) save_last();
    return;
  }
  // In an epoch that was stopped after its last step, only the evaluation remains.
  while (state_.n_steps < setup_.goal.n_steps ||
         (state_.n_steps == setup_.goal.n_steps && state_.of_epoch.n_steps > 0)) {
    const Position begin = position();
    run_.tell(&Observer::epoch_begun, begin);
    tell_forecast();
    const bool goes_on = train_epoch();
    if (divergence_.has_change()) {
      if (roll_back()) continue;
      break;
    }
    const bool is_last = !goes_on || state_.epoch + 1 >= setup_.goal.n_epochs;
    if (ending_.exit_code == 0) end_epoch(epoch_record(begin), is_last);
    if (begin.step % epochs_.n_batches == 0) epoch_time_ = {watch_.elapsed().value - begin.elapsed.value};
    if (is_last || ending_.exit_code != 0) break;
    state_.begin_next_epoch();
  }
  if (ending_.status != RunStatus::failed) return save_last();
  saver_.finish();
  if (divergence_.is_step_bad()) keep_bad_step();
}

// Returns false if training ends before the epochs are over.
bool Trainer::train_epoch() {
  watchdog_.enter(runtime::Activity::training);
  is_epoch_over_ = false;
  setup_.batches.training->begin_epoch(state_.epoch, state_.of_epoch.n_steps);
  bool goes_on = true;
  while (goes_on && state_.n_steps < setup_.goal.n_steps) {
    timers_.begin(metrics::Phase::data_wait);
    const data::Batch* const batch = setup_.batches.training->next();
    timers_.end();
    if (batch == nullptr) break;
    goes_on = step(*batch);
    tell_step();
    const bool is_within = state_.n_steps % setup_.batches.training->n_batches() != 0;
    if (goes_on && is_within && saver_.is_due(state_.samples_seen) && state_.n_steps < setup_.goal.n_steps) {
      goes_on = settle(true);
      if (goes_on) save_in_between();
      goes_on = goes_on && ending_.exit_code == 0;
    }
    if (goes_on && interval_.is_due(state_.n_steps) && state_.n_steps < setup_.goal.n_steps) tell_interval();
  }
  run_.tell(&Observer::steps_over);
  const bool is_done = goes_on && state_.n_steps == setup_.goal.n_steps;
  goes_on = end_steps(goes_on);
  if (is_done && ending_.status != RunStatus::failed) tell_interval();
  return goes_on && !is_done;
}

// One step of data-parallel training; returns false if it was the last.
bool Trainer::step(const data::Batch& batch) {
  run_.tell(&Observer::step_begun, state_.n_steps);
  watchdog_.set_unit(state_.n_steps + 1);
  if (options_.drill)  // before any code reads the parameters in this step
    for (const std::string& parameter : options_.drill->take_flips(state_.n_steps + 1)) learner_.flip_bit(parameter);
  state_.learning_rate = optim::learning_rate(setup_.schedule, state_.samples_seen);
  parallel::StepReport report =
      learner_.step(batch, {.learning_rate = state_.learning_rate, .epoch = state_.epoch, .step = state_.n_steps});
  report.stop = is_stop_asked();
  saver_.add_to(report);
  watchdog_.set_wait(runtime::Wait::agreement);
  const auto agreement = control_.exchange(report);
  watchdog_.set_wait(runtime::Wait::nothing);
  count(batch);
  return account(agreement);
}

void Trainer::count(const data::Batch& batch) {
  state_.rates[state_.n_steps % state_.rates.size()] = state_.learning_rate;
  ++state_.n_steps;
  state_.samples_seen += batch.n_global;
  const metrics::PhaseTimes lap = timers_.lap();
  if (has_stepped_) limit_.step_made(lap.of_steps());  // the first step includes preparations
  interval_.add(lap, batch.n_global);
  steady_.add(lap, batch.n_global);
  run_.tell(&Observer::step_made,
            StepWork{.n_samples = batch.n, .n_calls = learner_.n_calls(), .time = lap.of_steps()});
  watchdog_.beat();
}

// Processes what all ranks know of earlier steps; returns false if training ends.
bool Trainer::account(const std::optional<parallel::StepAgreement>& agreement) {
  if (!agreement) return true;
  if (divergence_.has_change() || divergence_.note_change(*agreement)) return false;  // first: losses follow from it
  if (agreement->not_finite) {  // before anything is stopped or saved
    ending_ = {.status = RunStatus::failed,
               .message = divergence_.report_not_finite(*agreement, state_),
               .exit_code = core::to_int(core::ExitCode::failed)};
    return false;
  }
  note_loss(*agreement);
  saver_.proceed(*agreement);
  if (agreement->stop) stop();
  return !agreement->stop;
}

void Trainer::note_loss(const parallel::StepAgreement& agreement) {
  if (agreement.n == 0) return;  // nothing was done before the first step
  AgreedSums& epoch = state_.of_epoch;
  run_.tell(&Observer::step_agreed,
            StepRecord{.epoch = state_.epoch, .step = epoch.n_steps, .loss = mean(agreement.loss, agreement.n)});
  epoch.add(agreement);
  interval_.add(agreement);
  state_.add_loss(agreement.loss);
  ++state_.n_agreed;
}

// Processes the remaining results of the steps of an epoch, or of those before a signal; returns false if training
// ends.
bool Trainer::end_steps(bool goes_on) {
  goes_on = settle(goes_on) && goes_on;
  if (state_.of_epoch.n_steps < epochs_.n_batches) return goes_on;
  if (goes_on) check_coverage();
  ledger_before_ = 0;
  return goes_on;
}

// Collective: makes all ranks know the results of all steps; returns false if training ends.
bool Trainer::settle(bool goes_on) {
  parallel::StepReport rest = learner_.report_last();
  rest.ledger = setup_.batches.training->ledger().hash();
  watchdog_.set_wait(runtime::Wait::agreement);
  const auto before_last = control_.exchange(rest);
  const auto last = control_.finish();
  watchdog_.set_wait(runtime::Wait::nothing);
  for (const auto& agreement : {before_last, last})
    if (ending_.status != RunStatus::failed) goes_on = account(agreement) && goes_on;
  state_.ledger = ledger_before_ + last->ledger;
  return goes_on;
}

// For a whole epoch: every sample was delivered once, with any ranks, orders, caches and resumptions.
void Trainer::check_coverage() const {
  const bool has_other_begin = options_.resume_anyway && ledger_before_ != 0;  // in another order, or from another set
  const bool is_exact =
      !recipe_.drop_last && recipe_.order != data::Order::torch && recipe_.synthetic_steps == 0 && !has_other_begin;
  if (is_exact)
    core::require(state_.ledger == data::Ledger::complete(setup_.batches.training->info().n_samples).hash(),
                  "an epoch has delivered every sample once");
}

// Collective, after each step.
void Trainer::tell_step() {
  const Position at = position();
  run_.tell(&Observer::working, at);
  if (std::exchange(has_stepped_, true)) return;
  run_.tell(&Observer::first_step_made, at);
  interval_.begin(at);
}

// Collective.
void Trainer::tell_interval() {
  std::optional<TrainRecord> record = interval_.report(position(), state_.learning_rate, setup_.goal);
  if (!record) return;
  record->rmse = rmse_of(recipe_, record->loss);
  run_.tell(&Observer::interval_over, *record);
}

void Trainer::end_epoch(EpochRecord record, bool is_last) {
  state_.epoch_loss = record.loss;
  run_.tell(&Observer::epoch_trained, record);
  const bool is_due = recipe_.evaluate_every > 0 && (state_.epoch + 1) % recipe_.evaluate_every == 0;
  if (is_last || is_due) {
    evaluate();
    if (ending_.exit_code == 0) record.evaluation = state_.evaluation;
  }
  run_.tell(&Observer::epoch_over, record);
  is_epoch_over_ = ending_.exit_code == 0 && state_.n_steps % setup_.batches.training->n_batches() == 0;
  if (ending_.exit_code != 0) return;
  saver_.note_epoch(snapshot().state);
  if (!is_last && saver_.is_due(state_.samples_seen)) save_in_between();
}

// Collective.
void Trainer::evaluate() {
  if (!setup_.batches.evaluation) return;
  saver_.finish();  // an evaluation may take long
  watchdog_.enter(runtime::Activity::evaluation);
  std::uint64_t n_batches = 1;
  watchdog_.set_unit(n_batches);
  const core::Timer watch{clock_};
  timers_.begin(metrics::Phase::evaluation);
  const auto sums = evaluate_split(
      world_, *setup_.batches.evaluation, learner_, [this] { return is_stop_asked(); },
      [&](double share) {
        watchdog_.beat();
        watchdog_.set_unit(++n_batches);
        run_.tell(&Observer::working, position());
        run_.tell(&Observer::evaluating, position(), share);
      });
  timers_.end();
  if (!sums) return stop();
  state_.evaluation = evaluation_record(*sums, watch.elapsed());
  state_.note_evaluation(*state_.evaluation);
  run_.tell(&Observer::evaluated, *state_.evaluation);
}

// Collective.
void Trainer::save_in_between() {
  saver_.finish();
  if (const auto lost = saver_.save_in_between(snapshot())) fail_once(*lost);
}

}  // namespace lockstep::training
