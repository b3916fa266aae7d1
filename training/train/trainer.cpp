#include "training/train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <iterator>
#include <utility>

#include "checkpoint/folder.hpp"
#include "core/log.hpp"
#include "data/load/ledger.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/together.hpp"
#include "training/recipe/specs.hpp"
#include "training/recipe/words.hpp"
#include "training/run/info.hpp"
#include "training/train/dry_run.hpp"
#include "training/train/evaluate.hpp"
#include "training/train/model.hpp"
#include "training/train/resume.hpp"

namespace lockstep::training {
namespace {

constexpr const char* stopping_text =
    "\nstopping after this step, with a checkpoint; a second signal ends the run at once\n";

// On rank 0, because others may lack the batch system's variables. They wait for the result.
std::optional<core::Seconds> time_left(const runtime::Communicator& world, const RunOptions& options,
                                       runtime::Watchdog& watchdog) {
  watchdog.enter(runtime::Activity::setup, time_for_answer);
  const bool is_trained = !options.evaluate_only && !options.dry_run;
  if (world.rank() != 0 || !is_trained || options.time_limit.value == 0) return std::nullopt;
  return options.time_limit.value > 0 ? options.time_limit : time_left_of_job();
}

// Checks the time limit that the user requested.
void require_time(const TimeLimit& limit, core::Seconds asked) {
  if (asked.value <= 0 || !limit.is_near()) return;
  core::fail_usage(
      {.what = fmt::format("{} is too short for a step and a checkpoint", core::format_seconds(asked)),
       .where = "--time-limit",
       .expected = fmt::format("more than the {} that are reserved for them", core::format_seconds(limit.reserve())),
       .fix = "use a longer limit, or 0 for none"});
}

}  // namespace

Trainer::Trainer(const runtime::Session& session, const OpenDevice& device, const ResolvedRecipe& resolved,
                 const RunOptions& options, runtime::Watchdog& watchdog)
    : clock_{session.clock()},
      watch_{clock_},
      limit_{time_left(session.world(), options, watchdog), clock_},
      session_{session},
      world_{session.world()},
      recipe_{resolved.recipe},
      options_{options},
      device_{*device.device},
      watchdog_{watchdog},
      topology_{device.topology},
      choice_{device.choice},
      run_{world_, recipe_, options_, clock_},  // before ranks share anything: none waits for a rank that leaves here
      setup_{set_up(world_, device, resolved, options_, timers_, [this] { note_progress(); })},
      learner_{*setup_.learner},
      control_{*setup_.transport, recipe_.deterministic},
      interval_{world_, topology_},
      since_saved_{clock_} {
  learner_.synchronizer().set_on_wait(
      [this](runtime::Wait what, std::size_t number) { watchdog_.set_wait(what, number); });
  if (limit_.is_known()) limit_.expect(learner_.checkpoint_bytes());
  runtime::together(world_, [this] { require_time(limit_, options_.time_limit); });
  if (limit_.is_near()) {  // for a job: it would stop at once, again and again, without progress
    core::log_warning(fmt::format(
        "the {} that are left are too short for a checkpoint, which needs {}: the run does not stop before the limit",
        core::format_seconds(limit_.left()), core::format_seconds(limit_.reserve())));
    limit_ = TimeLimit{std::nullopt, clock_};
  }
  is_setting_up_ = false;
  learner_.set_drill(options_.drill.get());
  if (options_.drill) start_drill();
  if (!options_.dry_run && !options_.evaluate_only) resume();
  RunInfo info = run_info(world_, topology_, choice_, resolved, options_.arguments);
  info.set_digest = epochs_.set_digest;
  info.resume = resume_promise(recipe_, world_.n_ranks(), changes_);
  if (options_.drill) info.faults = options_.drill->texts();
  std::ranges::move(setup_.warnings, std::back_inserter(info.warnings));
  run_.start(info,
             {setup_.goal, device_, learner_.network(), executor_options(recipe_, 1), learner_.executor(),
              saves_checkpoints() ? learner_.checkpoint_bytes() : core::Bytes{}},
             resumed_, watchdog_);
}

// Collective.
void Trainer::resume() {
  runtime::together(world_, [&] {
    epochs_ = {.set_digest = digest_of_set(recipe_),
               .n_batches = setup_.batches.training->n_batches(),
               .n_ranks = static_cast<std::uint64_t>(world_.n_ranks())};
  });
  watchdog_.enter(runtime::Activity::setup, time_for_disk());
  const auto from = find_checkpoint(world_, options_);
  if (from) {
    go_on_from(*from);
    require_ledger(*from);
    runtime::together(world_, [&] { changes_ = changes_of_bits(*from, recipe_, epochs_); });
  }
  if (!changes_.empty() && world_.rank() == 0)
    core::log_info(fmt::format("checkpoint '{}' comes from a run with other settings: the result {}", from->path(),
                               resume_promise(recipe_, world_.n_ranks(), changes_).text));
  watchdog_.enter(runtime::Activity::setup);
}

// Collective.
void Trainer::go_on_from(const checkpoint::Checkpoint& from) {
  runtime::together(world_, [&] { state_ = resume_state(from, recipe_, epochs_, options_.resume_anyway); });
  if (state_.n_steps > setup_.goal.n_steps)
    setup_.warnings.push_back(
        fmt::format("nothing is trained: checkpoint '{}' is after step {}, but the requested number of steps is {}",
                    from.path(), state_.n_steps, setup_.goal.n_steps));
  learner_.load_checkpoint(from, state_);
  ledger_before_ = state_.ledger;
  saved_at_ = kept_at_ = state_.samples_seen;
  since_saved_.restart();
  epoch_time_ = {};
  is_save_asked_ = is_epoch_over_ = is_name_due_ = false;
  is_kept_here_ = run_.has_kept(from.path());
  if (is_kept_here_ && world_.rank() == 0)  // it may have been killed before it did
    for (const std::string& name : names_of(state_)) checkpoint::give_name(checkpoint_path(), name);
  resumed_ = ResumeRecord{.at = position(), .from = from.path()};
}

int Trainer::run() try {
  if (const std::string device = to_text(choice_); options_.evaluate_only && !device.empty() && world_.rank() == 0)
    core::log_info(fmt::format("evaluated in {} on {}", word_of(recipe_.precision), device));
  options_.evaluate_only ? evaluate() : train();
  finish();
  return exit_code();
} catch (const std::exception& error) {
  run_.fail(position(), fmt::format("rank {} on {}: {}", world_.rank(), runtime::host_name(), error.what()));
  throw;
}

int Trainer::describe() {
  DryRun plan = plan_run(world_, topology_, device_, recipe_, *setup_.batches.training, learner_, setup_.goal);
  plan.device = to_text(choice_);
  if (const int signal = runtime::agree_on_interrupt(world_)) return 128 + signal;
  if (world_.rank() == 0) run_.print(dry_run_text(plan));
  return exit_code();
}

void Trainer::train() {
  StartRecord start = start_record(world_, topology_, choice_, recipe_, setup_, run_.folder(), resumed_);
  start.promise = resume_promise(recipe_, world_.n_ranks(), changes_).text;
  if (limit_.is_known()) start.time_left = limit_.left();
  run_.tell(&Observer::started, start);
  if (world_.rank() == 0) runtime::announce_interrupt(stopping_text);
  if (runtime::agree_on_interrupt(world_) != 0) {  // a signal came during the setup
    stop();
    if (resumed_ && !is_kept_here_) save_last();
    return;
  }
  // In an epoch that was stopped after its last step, only the evaluation remains.
  while (state_.n_steps < setup_.goal.n_steps ||
         (state_.n_steps == setup_.goal.n_steps && state_.of_epoch.n_steps > 0)) {
    const Position begin = position();
    run_.tell(&Observer::epoch_begun, begin);
    tell_forecast();
    const bool goes_on = train_epoch();
    if (divergence_) {
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
  finish_save();
  if (is_step_bad_) keep_bad_step();
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
    if (goes_on && is_within && is_save_due() && state_.n_steps < setup_.goal.n_steps) {
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
  if (options_.drill) flip_bits();
  state_.learning_rate = optim::learning_rate(setup_.schedule, state_.samples_seen);
  const core::StepNumbers numbers{.learning_rate = state_.learning_rate, .epoch = state_.epoch, .step = state_.n_steps};
  learner_.compute_gradients(batch, numbers);
  const auto replica = learner_.update(numbers);
  parallel::StepReport report = learner_.report_before();
  report.replica = replica;
  report.stop = is_stop_asked();
  report.n_saved = saving_ ? saving_->writer->n_done() : 0;
  report.save = world_.rank() == 0 && setup_.save_time.value > 0 && since_saved_.elapsed() >= setup_.save_time;
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
  if (divergence_) return false;
  if (agreement->changed || !agreement->replicas_agree) {  // first, because losses follow from it
    note_divergence(*agreement);
    return false;
  }
  if (agreement->not_finite) {  // before anything is stopped or saved
    fail_not_finite(*agreement);
    return false;
  }
  note_loss(*agreement);
  if (saving_ && saving_->writer->may_advance(agreement->n_saved)) advance_save();
  is_save_asked_ = is_save_asked_ || agreement->save;
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
  parallel::StepReport rest = learner_.report();
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
  is_name_due_ = saves_in_between() && ending_.exit_code == 0 && !names_of(kept_state()).empty();
  if (!is_last && ending_.exit_code == 0 && (is_save_due() || is_name_due_)) save_in_between();
}

// Collective.
void Trainer::evaluate() {
  if (!setup_.batches.evaluation) return;
  finish_save();  // an evaluation may take long
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
void Trainer::finish() {
  FinalRecord record = final_record();
  run_.tell(&Observer::ending, record);
  run_.tell(&Observer::ended, std::as_const(record));
}

// Collective, at the end.
int Trainer::exit_code() const {
  if (is_place_lost_) return ending_.exit_code;
  const auto bad = session_.agree(run_.complaint());
  return bad && ending_.exit_code == 0 ? core::to_int(*bad) : ending_.exit_code;
}

}  // namespace lockstep::training
