// The trainer before its first step: setup, resuming and drills; and the run that only describes itself.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/log.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/together.hpp"
#include "training/run/info.hpp"
#include "training/train/assumed_ranks.hpp"
#include "training/train/dry_run.hpp"
#include "training/train/forecast.hpp"
#include "training/train/model.hpp"
#include "training/train/resume.hpp"
#include "training/train/trainer.hpp"

namespace lockstep::training {
namespace {

// On rank 0, because others may lack the batch system's variables. They wait for the result.
std::optional<core::Seconds> time_left(const runtime::Session& session, const RunOptions& options,
                                       runtime::Watchdog& watchdog) {
  watchdog.enter(runtime::Activity::setup, time_for_answer);
  const bool is_trained = !options.evaluate_only && !options.dry_run;
  if (session.world().rank() != 0 || !is_trained || options.time_limit.value == 0) return std::nullopt;
  return options.time_limit.value > 0 ? options.time_limit : time_left_of_job(session.clock());
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

Trainer::Trainer(const runtime::Session& session, const OpenDevice& device, ResolvedRecipe& resolved,
                 const RunOptions& options, runtime::Watchdog& watchdog)
    : clock_{session.clock()},
      watch_{clock_},
      limit_{time_left(session, options, watchdog), clock_},
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
      saver_{{world_, recipe_, options_, setup_, epochs_, run_, limit_, timers_, watchdog_, clock_}},
      divergence_{world_, learner_} {
  learner_.synchronizer().set_on_wait(
      [this](runtime::Wait what, std::size_t number) { watchdog_.set_wait(what, number); });
  if (limit_.is_known()) limit_.expect(checkpoint_bytes(recipe_, learner_.network()));
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
  info.strategy = name(*recipe_.strategy);
  info.why_strategy = setup_.why_strategy;
  if (setup_.batches.training && !options_.dry_run && !options_.evaluate_only)
    forecast_ = forecast_use(world_, setup_.transport->nodes(), recipe_, *setup_.batches.training, learner_);
  info.forecast = forecast_;
  info.resume = resume_promise(recipe_, world_.n_ranks(), changes_);
  if (options_.drill) info.faults = options_.drill->texts();
  std::ranges::move(setup_.warnings, std::back_inserter(info.warnings));
  run_.start(info,
             {setup_.goal, device_, learner_.network(), executor_options(recipe_, 1), learner_.executor(),
              saver_.saves_checkpoints() ? checkpoint_bytes(recipe_, learner_.network()) : core::Bytes{}},
             resumed_, watchdog_);
}

// Collective.
void Trainer::resume() {
  runtime::together(world_, [&] {
    epochs_ = {.set_digest = digest_of_set(recipe_),
               .n_batches = setup_.batches.training->n_batches(),
               .n_ranks = static_cast<std::uint64_t>(world_.n_ranks())};
  });
  watchdog_.enter(runtime::Activity::setup, saver_.time_for_disk());
  const auto from = find_checkpoint(world_, options_);
  if (from) {
    go_on_from(*from);
    const bool may_differ = options_.resume_anyway || recipe_.synthetic_steps > 0;  // or one batch, repeated
    if (!may_differ) require_ledger(world_, *from, state_, *setup_.batches.training);
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
  epoch_time_ = {};
  is_epoch_over_ = false;
  saver_.continue_from(from.path(), state_);
  resumed_ = ResumeRecord{.at = position(), .from = from.path()};
}

int Trainer::describe() {
  DryRun plan =
      plan_run(world_, topology_, *setup_.transport, device_, recipe_, *setup_.batches.training, learner_, setup_.goal);
  plan.device = to_text(choice_);
  plan.why_strategy = setup_.why_strategy;
  if (options_.assumed_ranks > 0)
    assume_ranks(plan, device_, recipe_, learner_.network(), *setup_.batches.training, options_.assumed_ranks);
  if (const int signal = runtime::agree_on_interrupt(world_)) return 128 + signal;
  if (world_.rank() == 0) run_.print(dry_run_text(plan));
  return exit_code();
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

}  // namespace lockstep::training
