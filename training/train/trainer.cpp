#include "training/train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/log.hpp"
#include "data/load/ledger.hpp"
#include "runtime/interrupt.hpp"
#include "training/recipe/specs.hpp"
#include "training/run/info.hpp"
#include "training/train/dry_run.hpp"
#include "training/train/evaluate.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {
namespace {

constexpr const char* stopping_text =
    "\nstopping after this step, with the weights kept; a second signal ends at once\n";

}  // namespace

Trainer::Trainer(const runtime::Session& session, nn::Device& device, const ResolvedRecipe& resolved,
                 const RunOptions& options, runtime::Watchdog& watchdog)
    : session_{session},
      world_{session.world()},
      recipe_{resolved.recipe},
      options_{options},
      device_{device},
      watchdog_{watchdog},
      topology_{runtime::discover_topology(world_)},
      run_{world_, recipe_, options_},  // before ranks share anything: who leaves then is not waited for
      setup_{set_up(world_, topology_, device_, resolved, options_, timers_, [this] { watchdog_.beat(); })},
      learner_{*setup_.learner},
      control_{*setup_.transport, recipe_.deterministic},
      interval_{world_, topology_} {
  RunInfo info = run_info(world_, topology_, resolved, options_.arguments);
  std::ranges::move(setup_.warnings, std::back_inserter(info.warnings));
  run_.start(info, {setup_.goal, device_, learner_.network(), executor_options(recipe_, 1), learner_.executor()},
             watchdog_);
}

int Trainer::run() try {
  options_.evaluate_only ? evaluate() : train();
  finish();
  return exit_code();
} catch (const std::exception& error) {
  run_.fail(position(), fmt::format("rank {} on {}: {}", world_.rank(), runtime::host_name(), error.what()));
  throw;
}

int Trainer::describe() {
  const DryRun plan = plan_run(world_, topology_, device_, recipe_, *setup_.batches.training, learner_, setup_.goal);
  if (const int signal = runtime::agree_on_interrupt(world_)) return 128 + signal;
  if (world_.rank() == 0) run_.print(dry_run_text(plan));
  return exit_code();
}

void Trainer::train() {
  run_.tell(&Observer::started, start_record(world_, topology_, recipe_, setup_, run_.folder()));
  if (world_.rank() == 0) runtime::announce_interrupt(stopping_text);
  if (runtime::agree_on_interrupt(world_) != 0) return stop_for_signal();  // it came while all was made ready
  for (; state_.epoch < setup_.goal.n_epochs; ++state_.epoch) {
    const Position begin = position();
    run_.tell(&Observer::epoch_begun, begin);
    const bool goes_on = train_epoch();
    const bool is_last = !goes_on || state_.epoch + 1 == setup_.goal.n_epochs;
    if (ending_.exit_code == 0) end_epoch(epoch_record(begin), is_last);
    if (is_last || ending_.exit_code != 0) break;
  }
  if (ending_.status != RunStatus::failed) save(ending_.exit_code == 0 && is_save_due());
}

// False if training is to end before the epochs are over.
bool Trainer::train_epoch() {
  watchdog_.enter(runtime::Activity::training);
  setup_.batches.training->begin_epoch(state_.epoch);
  state_.of_epoch = {};
  bool goes_on = true, is_whole = false;
  while (goes_on && state_.n_steps < setup_.goal.n_steps) {
    timers_.begin(metrics::Phase::data_wait);
    const data::Batch* const batch = setup_.batches.training->next();
    timers_.end();
    is_whole = batch == nullptr;
    if (is_whole) break;
    goes_on = step(*batch);
    tell_step();
    if (goes_on && interval_.is_due(state_.n_steps) && state_.n_steps < setup_.goal.n_steps) tell_interval();
  }
  run_.tell(&Observer::steps_over);
  const bool is_done = goes_on && state_.n_steps == setup_.goal.n_steps;
  goes_on = end_steps(goes_on, is_whole);
  if (is_done && ending_.status != RunStatus::failed) tell_interval();
  return goes_on && !is_done;
}

// One step of data-parallel training; false if it was the last.
bool Trainer::step(const data::Batch& batch) {
  run_.tell(&Observer::step_begun, state_.n_steps);
  state_.learning_rate = optim::learning_rate(setup_.schedule, state_.samples_seen);
  const core::StepNumbers numbers{.learning_rate = state_.learning_rate, .epoch = state_.epoch, .step = state_.n_steps};
  parallel::StepReport report = learner_.report();  // of the step before
  learner_.compute_gradients(batch, numbers);
  report.replica = learner_.update(numbers);
  report.stop = runtime::pending_interrupt() != 0;
  const auto agreement = control_.exchange(report);
  count(batch);
  return account(agreement);
}

void Trainer::count(const data::Batch& batch) {
  state_.rates[state_.n_steps % state_.rates.size()] = state_.learning_rate;
  ++state_.n_steps;
  state_.samples_seen += batch.n_global;
  const metrics::PhaseTimes lap = timers_.lap();
  interval_.add(lap, batch.n_global);
  steady_.add(lap, batch.n_global);
  run_.tell(&Observer::step_made,
            StepWork{.n_samples = batch.n, .n_calls = learner_.n_calls(), .time = lap.of_steps()});
  watchdog_.beat();
}

// What all ranks know of the steps before; false if training ends.
bool Trainer::account(const std::optional<parallel::StepAgreement>& agreement) {
  if (!agreement) return true;
  note_loss(*agreement);
  if (agreement->not_finite) {  // first, as what was stopped is saved
    fail_not_finite(*agreement->not_finite);
    return false;
  }
  if (!agreement->replicas_agree) learner_.synchronizer().fail_for_replicas();
  if (agreement->stop) stop_for_signal();
  return !agreement->stop;
}

void Trainer::note_loss(const parallel::StepAgreement& agreement) {
  if (agreement.n == 0) return;  // nothing was done before the first step
  AgreedSums& epoch = state_.of_epoch;
  run_.tell(&Observer::step_agreed,
            StepRecord{.epoch = state_.epoch, .step = epoch.n_steps, .loss = mean(agreement.loss, agreement.n)});
  epoch.add(agreement);
  interval_.add(agreement);
  state_.losses.update(std::as_bytes(std::span{&agreement.loss, 1}));
  ++state_.n_agreed;
}

// What is left to be known of the steps of an epoch, or of those before a signal; false if training ends.
bool Trainer::end_steps(bool goes_on, bool is_whole) {
  parallel::StepReport rest = learner_.report();
  rest.ledger = setup_.batches.training->ledger().hash();
  const auto before_last = control_.exchange(rest);
  const auto last = control_.finish();
  for (const auto& agreement : {before_last, last})
    if (ending_.status != RunStatus::failed) goes_on = account(agreement) && goes_on;
  if (goes_on && is_whole) check_coverage(*last);
  return goes_on;
}

// Of a whole epoch: every sample once, whatever ranks, orders and caches there were.
void Trainer::check_coverage(const parallel::StepAgreement& last) const {
  const bool is_exact = !recipe_.drop_last && recipe_.order != "torch" && recipe_.synthetic_steps == 0;
  if (is_exact)
    core::require(last.ledger == data::Ledger::complete(setup_.batches.training->info().n_samples).hash(),
                  "an epoch has delivered every sample once");
}

// Collective, after each step.
void Trainer::tell_step() {
  const Position at = position();
  run_.tell(&Observer::working, at);
  if (at.step > 1) return;
  run_.tell(&Observer::first_step_made, at);
  interval_.begin(at.elapsed);
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
  if (!is_last && ending_.exit_code == 0 && is_save_due()) save(true);
}

// Collective.
void Trainer::evaluate() {
  if (!setup_.batches.evaluation) return;
  watchdog_.enter(runtime::Activity::evaluation);
  const core::Stopwatch watch;
  timers_.begin(metrics::Phase::evaluation);
  const auto sums = evaluate_split(world_, *setup_.batches.evaluation, learner_, [&](double share) {
    watchdog_.beat();
    run_.tell(&Observer::working, position());
    run_.tell(&Observer::evaluating, position(), share);
  });
  timers_.end();
  if (!sums) return stop_for_signal();
  state_.evaluation = evaluation_record(*sums, watch.elapsed());
  run_.tell(&Observer::evaluated, *state_.evaluation);
}

bool Trainer::is_save_due() const noexcept {
  return recipe_.save_every > 0 && (state_.epoch + 1) % recipe_.save_every == 0;
}

// Collective. `is_due`: by the recipe's interval.
void Trainer::save(bool is_due) {
  watchdog_.enter(runtime::Activity::save);
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::save};
  learner_.average_statistics();
  const auto complaint = core::complaint_of([this] { world_.rank() == 0 ? save_file() : void(); });
  if (session_.agree(complaint)) {
    ending_ = {.status = RunStatus::failed,
               .message = complaint ? complaint->problem().what : ending_.message,
               .exit_code = core::to_int(core::ExitCode::system)};
  } else if (world_.rank() == 0) {
    run_.tell(&Observer::saved, SaveRecord{.epoch = state_.epoch, .path = run_.weights_path(), .is_due = is_due});
  }
}

// On rank 0.
void Trainer::save_file() const try {
  learner_.save(run_.weights_path(),
                {.model = recipe_.model, .epoch = state_.epoch + 1, .samples_seen = state_.samples_seen}, "");
} catch (const core::Error& error) {
  throw core::Error{
      core::ExitCode::system,
      {.what = fmt::format("weights cannot be saved to '{}': {}", run_.weights_path(), error.problem().what),
       .fix = "make room, or name another place with --save-weights"}};
}

// Collective, when all ranks know that a signal came to one.
void Trainer::stop_for_signal() {
  const int signal = runtime::agree_on_interrupt(world_);
  ending_ = {.status = RunStatus::stopped, .message = fmt::format("signal {}", signal), .exit_code = 128 + signal};
}

void Trainer::fail_not_finite(int rank) {
  ending_ = {.status = RunStatus::failed,
             .message = fmt::format("the loss of step {} is not finite", state_.n_agreed),
             .exit_code = core::to_int(core::ExitCode::failed)};
  if (world_.rank() != rank) return;
  core::log_error(core::describe(
      {.what = fmt::format("{}, at a learning rate of {:.4g}", ending_.message,
                           state_.rates[(state_.n_agreed - 1) % state_.rates.size()]),
       .where = fmt::format("rank {} on {}, first in {}", rank, runtime::host_name(), learner_.not_finite_in()),
       .expected = "finite numbers",
       .fix = "a lower --lr, a --warmup or --clip-norm; or look at the data"}));
}

// Collective.
void Trainer::finish() {
  FinalRecord record = final_record();
  run_.tell(&Observer::ending, record);
  run_.tell(&Observer::ended, std::as_const(record));
}

// Collective, at the end.
int Trainer::exit_code() const {
  const auto bad = session_.agree(run_.complaint());
  return bad && ending_.exit_code == 0 ? core::to_int(*bad) : ending_.exit_code;
}

}  // namespace lockstep::training
