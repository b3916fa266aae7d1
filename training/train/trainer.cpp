#include "training/train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <utility>

#include "comm/transport_mpi.hpp"
#include "core/log.hpp"
#include "data/load/sampler.hpp"
#include "io/file.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/together.hpp"
#include "runtime/watch/guard.hpp"
#include "training/recipe/specs.hpp"
#include "training/run/info.hpp"
#include "training/run/weights.hpp"
#include "training/train/check_data.hpp"
#include "training/train/dry_run.hpp"
#include "training/train/evaluate.hpp"
#include "training/train/memory.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {

Trainer::Trainer(const runtime::Session& session, const ResolvedRecipe& resolved, const TrainOptions& options,
                 runtime::Watchdog& watchdog)
    : session_{session},
      world_{session.world()},
      resolved_{resolved},
      recipe_{resolved.recipe},
      options_{options},
      watchdog_{watchdog},
      topology_{runtime::discover_topology(world_)},
      interval_{1},  // progress is told early, so of more than the first step
      steady_{n_warmup_steps} {
  check_ranks(recipe_, world_.n_ranks());
  // Before ranks share anything: who leaves then is not waited for.
  runtime::together(world_, [this] { claim_outputs(); });
  Recipe to_read = recipe_;
  if (options.dry_run) to_read.stage.clear();  // nothing is left behind
  const auto fit = [this](const DataInfo& info, std::uint64_t most) { static_cast<void>(fitting_network(info, most)); };
  OpenBatches open = open_batches(world_, to_read, !options.evaluate_only, fit, [this] { watchdog_.beat(); });
  batches_ = std::move(open.training);
  evaluation_batches_ = std::move(open.evaluation);
  if (batches_) plan_training();
  check_evaluation(resolved_, batches_.get(), evaluation_batches_.get());
  const Batches& batches = batches_ ? *batches_ : *evaluation_batches_;
  nn::Network network = fitting_network(batches.info(), batches.most());
  transport_ = comm::make_mpi_transport(world_, {.topology = &topology_});
  const std::uint64_t most =
      options.dry_run ? std::min(batches.most(), whole_groups(recipe_, most_tried)) : batches.most();
  learner_ = std::make_unique<Learner>(world_, *transport_, recipe_, std::move(network), most, timers_,
                                       [this] { watchdog_.beat(); });
  learner_->initialize(options.init_from);
  if (options.profile) profiler_.emplace(learner_->network(), executor_options(recipe_, 1), learner_->executor());
  control_ = std::make_unique<parallel::ControlWord>(*transport_, recipe_.deterministic);
  RunInfo info = run_info(world_, topology_, resolved_, options.arguments);
  std::ranges::move(surprises(resolved_, goal_, batches_.get(), evaluation_batches_.get(), !options.init_from.empty()),
                    std::back_inserter(info.warnings));
  std::ranges::move(surprises(learner_->executor()), std::back_inserter(info.warnings));
  compat_run_ = compat_run(world_, topology_, recipe_, batches, evaluation_batches_.get(), goal_.n_epochs);
  runtime::together(world_, [&] {
    if (!directory_) return;
    if (batches_)
      check_room(weights_path(), tensors_of(learner_->network()),
                 options_.save_weights.empty() ? "--run-dir" : "--save-weights");
    directory_->start(info);
  });
  share_status();
  if (!is_lead()) return;
  for (const std::string& warning : info.warnings) core::log_warning(warning);
  display_ = std::make_unique<ProgressDisplay>();
}

// Rank 0: what would fail after the training fails before.
void Trainer::claim_outputs() {
  if (!is_lead() || options_.dry_run) return;
  if (options_.compat) compat_ = &require_compat_style(recipe_.name);
  directory_ = std::make_unique<RunDirectory>(options_.run_dir, recipe_.name);
  if (options_.save_weights.empty()) return;
  check_replaceable(options_.save_weights, "--save-weights");
  io::check_writable(options_.save_weights, "--save-weights");
}

// Collective. For samples like these, and the memory there is.
nn::Network Trainer::fitting_network(const DataInfo& info, std::uint64_t most) const {
  nn::Network network = make_network(recipe_, info);
  if (options_.evaluate_only) return network;
  check_groups(recipe_, network, info.n_samples, world_.n_ranks());
  if (!options_.dry_run) check_memory(world_, topology_, recipe_, network, most);
  return network;
}

// What training comes to on the set there is.
void Trainer::plan_training() {
  check_batches(resolved_, *batches_);
  const std::uint64_t n_epoch = n_epoch_samples(recipe_, *batches_, world_.n_ranks());
  goal_ = goal_of(recipe_, n_epoch, batches_->n_batches());
  schedule_ = schedule_spec(recipe_, n_epoch);
  optim::check(schedule_);
}

// Collective: whoever is left can tell how the run has ended.
void Trainer::share_status() {
  std::string path;
  if (directory_) path = std::filesystem::absolute(directory_->file("status.json")).string();
  status_path_ = world_.broadcast(path);
  if (status_path_.empty()) return;
  runtime::set_last_deed(mark_failed, status_path_);
  watchdog_.set_on_stall([path = status_path_](const std::string& report) { mark_failed(path, report); });
}

void Trainer::keep_alive() {
  if (directory_ && directory_->is_stale()) directory_->keep_alive(position());
}

// This rank fails alone, while others may be waiting for it.
void Trainer::tell_failure(const std::exception& error) const {
  const std::string reason = fmt::format("rank {} on {}: {}", world_.rank(), runtime::host_name(), error.what());
  directory_ ? directory_->fail(position(), reason) : mark_failed(status_path_, reason);
}

// One step of data-parallel training; false if it was the last.
bool Trainer::step(const Samples& samples) {
  agreed_lr_ = std::exchange(last_lr_, optim::learning_rate(schedule_, samples_seen_));
  if (profiler_ && n_steps_ == n_warmup_steps) profiler_->start();
  const nn::LossSums sums = learner_->compute_gradients(samples, epoch_);
  const double waited = learner_->waited().value;
  parallel::StepReport report{.loss = sums.loss, .n = sums.n, .n_top1 = sums.n_top1, .n_top5 = sums.n_top5};
  report.stop = runtime::pending_interrupt() != 0;
  if (!std::isfinite(sums.loss))
    report.not_finite = static_cast<std::uint32_t>(learner_->synchronizer().slots().size());
  learner_->update(last_lr_);
  report.replica = learner_->synchronizer().replica_hash();
  report.ledger = batches_->ledger().hash();
  const auto agreement = control_->exchange(report);
  ++n_steps_;
  samples_seen_ += samples.n_global;
  timers_.reassign(metrics::Phase::optimizer, metrics::Phase::communication, {learner_->waited().value - waited});
  const metrics::PhaseTimes lap = timers_.lap();
  interval_.add(lap, samples.n_global);
  steady_.add(lap, samples.n_global);
  if (profiler_ && profiler_->is_running()) profiler_->add(samples.view.n, learner_->n_calls());
  watchdog_.beat();
  return account(agreement);
}

// What all ranks know of the step before; false if training ends.
bool Trainer::account(const std::optional<parallel::StepAgreement>& agreement) {
  if (!agreement) return true;
  ++n_agreed_;
  loss_sum_ += agreement->loss;
  n_loss_ += agreement->n;
  epoch_loss_ += agreement->loss;
  n_epoch_loss_ += agreement->n;
  n_epoch_top1_ += agreement->n_top1;
  losses_.update(std::as_bytes(std::span{&agreement->loss, 1}));
  const std::uint64_t step = n_epoch_agreed_++;
  if (compat_ != nullptr && compat_->on_step != nullptr && step % compat_->step_interval == 0)
    printer_.print(compat_->on_step(compat_run_, epoch_, step, mean(agreement->loss, agreement->n)));
  if (agreement->not_finite) {
    exit_code_ = fail_not_finite(*agreement->not_finite);
    return false;
  }
  if (!agreement->replicas_agree) learner_->synchronizer().fail_for_replicas();
  if (agreement->stop) stop_for_signal();
  return !agreement->stop;
}

// Collective, when all ranks know that a signal came to one.
void Trainer::stop_for_signal() {
  const int signal = runtime::agree_on_interrupt(world_);
  state_ = RunState::stopped;
  message_ = fmt::format("signal {}", signal);
  exit_code_ = 128 + signal;
}

int Trainer::fail_not_finite(const parallel::NotFinite& found) {
  state_ = RunState::failed;
  message_ = fmt::format("the loss of step {} is not finite", n_agreed_);
  if (world_.rank() == found.rank)
    core::log_error(core::describe({.what = fmt::format("{}, at a learning rate of {:.4g}", message_, agreed_lr_),
                                    .where = fmt::format("rank {} on {}, first in {}", found.rank, runtime::host_name(),
                                                         learner_->not_finite_in()),
                                    .expected = "finite numbers",
                                    .fix = "a lower --lr, a --warmup or --clip-norm; or look at the data"}));
  return core::to_int(core::ExitCode::failed);
}

// Of a whole epoch: every sample once, whatever ranks, orders and caches there were.
void Trainer::check_coverage(const std::optional<parallel::StepAgreement>& last) const {
  const bool is_exact = !recipe_.drop_last && recipe_.order != "torch" && recipe_.synthetic_steps == 0;
  if (last && is_exact)
    core::require(last->ledger == data::Ledger::complete(batches_->info().n_samples).hash(),
                  "an epoch has delivered every sample once");
}

// False if training is to end before the epochs are over.
bool Trainer::train_epoch() {
  watchdog_.enter(runtime::Phase::training);
  batches_->begin_epoch(epoch_);
  n_epoch_agreed_ = 0;
  bool goes_on = true, is_whole = false;
  while (goes_on && n_steps_ < goal_.n_steps) {
    timers_.begin(metrics::Phase::data_wait);
    const Samples* const samples = batches_->next();
    timers_.end();
    is_whole = samples == nullptr;
    if (is_whole) break;
    goes_on = step(*samples);
    keep_alive();
    if (goes_on && n_steps_ == 1) tell_first_step();
    if (goes_on && (n_steps_ == next_report_ || n_steps_ == goal_.n_steps)) report_progress();
  }
  if (profiler_ && profiler_->is_running()) profiler_->stop(world_, steady_.phases().of_steps().value);
  const auto last = control_->finish();
  if (!goes_on) return false;
  agreed_lr_ = last_lr_;
  if (!account(last)) return false;
  if (is_whole) check_coverage(last);
  return n_steps_ < goal_.n_steps;
}

// Collective.
void Trainer::evaluate() {
  if (!evaluation_batches_) return;
  watchdog_.enter(runtime::Phase::evaluation);
  const core::Stopwatch watch;
  timers_.begin(metrics::Phase::evaluation);
  std::uint64_t n_done = 0;
  core::Stopwatch since_told;
  const auto sums = evaluate_split(world_, *evaluation_batches_, *learner_, [&] {
    watchdog_.beat();
    keep_alive();
    tell_evaluation(++n_done, since_told);
  });
  timers_.end();
  if (!sums) return stop_for_signal();
  EvaluationRecord record{.at = position(), .n_samples = sums->n, .loss = mean(sums->loss, sums->n)};
  if (recipe_.loss != "mse") {
    record.top1_percent = 100 * mean(static_cast<double>(sums->n_top1), sums->n);
    if (constexpr std::size_t of_all = 5; evaluation_batches_->info().spec.classes.size() > of_all)
      record.top5_percent = 100 * mean(static_cast<double>(sums->n_top5), sums->n);
    compat_epoch_.evaluation_top1 = compat_end_.evaluation_top1 = sums->n_top1;
  }
  record.rmse = rmse_of(recipe_, record.loss);
  record.time = watch.elapsed();
  compat_epoch_.evaluation_loss = record.loss;
  evaluation_ = record;
  if (!is_lead()) return;
  directory_->log(record);
  const std::string text = evaluation_text(record, goal_);
  if (options_.evaluate_only)
    printer_.print(text + "\n");  // the result of the run
  else if (compat_ == nullptr)
    display_->print(text);
}

std::string Trainer::weights_path() const {
  return options_.save_weights.empty() ? directory_->file("weights.h5") : options_.save_weights;
}

void Trainer::save_file() const try {
  learner_->save(weights_path(), {.model = recipe_.model, .epoch = epoch_ + 1, .samples_seen = samples_seen_}, "");
} catch (const core::Error& error) {
  throw core::Error{core::ExitCode::system,
                    {.what = fmt::format("weights cannot be saved to '{}': {}", weights_path(), error.problem().what),
                     .fix = "make room, or name another place with --save-weights"}};
}

// Collective. `is_due`: by the recipe's interval, as tutorials tell it.
void Trainer::save(bool is_due) {
  watchdog_.enter(runtime::Phase::save);
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::save};
  learner_->average_statistics();
  const auto complaint = core::complaint_of([this] { is_lead() ? save_file() : void(); });
  if (session_.agree(complaint)) {
    state_ = RunState::failed;
    if (complaint) message_ = complaint->problem().what;
    exit_code_ = core::to_int(core::ExitCode::system);
  } else if (compat_ != nullptr && compat_->on_saved != nullptr && is_due) {
    printer_.print(compat_->on_saved(epoch_, weights_path()));
  }
}

void Trainer::end_epoch(bool is_last) {
  compat_epoch_.epoch = epoch_;
  compat_epoch_.learning_rate = last_lr_;
  compat_epoch_.loss = mean(epoch_loss_, n_epoch_loss_);
  compat_epoch_.top1_percent = 100 * mean(static_cast<double>(n_epoch_top1_), n_epoch_loss_);
  last_loss_ = compat_epoch_.loss;
  tell_epoch();
  epoch_loss_ = 0;
  n_epoch_loss_ = n_epoch_top1_ = 0;
  compat_epoch_.evaluation_loss.reset();
  compat_epoch_.evaluation_top1.reset();
  if (is_last || (recipe_.evaluate_every > 0 && (epoch_ + 1) % recipe_.evaluate_every == 0)) evaluate();
  if (compat_ != nullptr && compat_->on_epoch_end != nullptr)
    printer_.print(compat_->on_epoch_end(compat_run_, compat_epoch_));
  if (!is_last && exit_code_ == 0 && is_save_due()) save(true);
}

bool Trainer::is_save_due() const noexcept { return recipe_.save_every > 0 && (epoch_ + 1) % recipe_.save_every == 0; }

int Trainer::run() try {
  options_.evaluate_only ? evaluate() : train_epochs();
  finish();
  return exit_code();
} catch (const std::exception& error) {
  tell_failure(error);
  throw;
}

void Trainer::train_epochs() {
  if (compat_ != nullptr && compat_->on_start != nullptr) printer_.print(compat_->on_start(compat_run_));
  if (is_lead()) tell_start();
  if (runtime::agree_on_interrupt(world_) != 0) return stop_for_signal();  // it came while all was made ready
  for (; epoch_ < goal_.n_epochs; ++epoch_) {
    if (compat_ != nullptr && compat_->on_epoch_begin != nullptr)
      printer_.print(compat_->on_epoch_begin(compat_run_, epoch_));
    const Position begin = position();
    const bool goes_on = train_epoch();
    compat_epoch_.time = {position().elapsed.value - begin.elapsed.value};
    compat_epoch_.n_steps = n_steps_ - begin.step;
    compat_epoch_.samples_per_s =
        static_cast<double>(samples_seen_ - begin.samples_seen) / std::max(compat_epoch_.time.value, 1e-9);
    compat_end_.epoch_times.push_back(compat_epoch_.time);
    const bool is_last = !goes_on || epoch_ + 1 == goal_.n_epochs;
    if (exit_code_ == 0) end_epoch(is_last);
    if (is_last || exit_code_ != 0) break;
  }
  if (state_ != RunState::failed) save(exit_code_ == 0 && is_save_due());
}

int Trainer::describe() {
  const DryRun plan = plan_run(world_, topology_, recipe_, *batches_, *learner_, goal_);
  if (const int signal = runtime::agree_on_interrupt(world_)) return 128 + signal;
  if (is_lead()) printer_.print(dry_run_text(plan));
  return exit_code();
}

Position Trainer::position() const {
  return {
      .epoch = batches_ ? epoch_ + 1 : 0, .step = n_steps_, .samples_seen = samples_seen_, .elapsed = watch_.elapsed()};
}

// Collective, at the end.
int Trainer::exit_code() const {
  const bool is_told = directory_ == nullptr || !directory_->complaint();
  const auto bad = session_.agree(is_told ? printer_.complaint() : directory_->complaint());
  return bad && exit_code_ == 0 ? core::to_int(*bad) : exit_code_;
}

}  // namespace lockstep::training
