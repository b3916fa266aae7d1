// What the trainer tells: at the start, after the first step, now and then, after each epoch and at the end.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/printable.hpp"
#include "runtime/interrupt.hpp"
#include "training/recipe/specs.hpp"
#include "training/run/info.hpp"
#include "training/train/trainer.hpp"

namespace lockstep::training {
namespace {

constexpr double most_to_first_report = 9;  // steps after the first one
constexpr core::Seconds report_interval{2};
constexpr const char* stopping_text =
    "\nstopping after this step, with the weights kept; a second signal ends at once\n";
constexpr const char* no_profile_text = "no profile: all steps were warm-up\n";

}  // namespace

void Trainer::tell_start() {
  runtime::announce_interrupt(stopping_text);
  if (compat_ != nullptr) return;
  const nn::Executor& executor = learner_->executor();
  const StartRecord record{.model = recipe_.model,
                           .n_parameters = learner_->network().n_parameter_elements(),
                           .precision = recipe_.precision,
                           .data = recipe_.synthetic ? "made on the spot" : recipe_.data,
                           .n_samples = batches_->info().n_samples,
                           .shape = nn::to_string(batches_->info().input),
                           .n_evaluation = evaluation_batches_ ? evaluation_batches_->info().n_samples : 0,
                           .n_ranks = static_cast<std::uint64_t>(world_.n_ranks()),
                           .n_nodes = topology_.n_nodes,
                           .global_batch = recipe_.batch,
                           .memory = {executor.n_bytes() + 2 * executor.arena_elements() * sizeof(float)},
                           .folder = directory_->path()};
  display_->print(start_text(record, goal_));
}

// Collective: the next report comes after report_interval if steps take `step_s`.
void Trainer::plan_report(double step_s, double most_steps) {
  const double n_steps = std::clamp(report_interval.value / std::max(step_s, 1e-9), 1.0, most_steps);
  next_report_ = n_steps_ + runtime::broadcast_value(world_, static_cast<std::uint64_t>(n_steps));
}

// Collective.
void Trainer::tell_first_step() {
  const core::Seconds time = watch_.elapsed();
  if (is_lead() && compat_ == nullptr) display_->update(first_step_text(time, goal_));
  plan_report(time.value, most_to_first_report);
}

// Collective.
void Trainer::report_progress() {
  const auto steps = interval_.reduce(world_);
  const metrics::PhaseReport phases = metrics::reduce_phases(world_, topology_, interval_.phases());
  if (is_lead() && steps) {
    TrainRecord record = make_train_record(position(), mean(loss_sum_, n_loss_), last_lr_, *steps, phases, goal_);
    record.rmse = rmse_of(recipe_, record.loss);
    record.first_epoch = first_epoch_;
    directory_->log(record);
    if (compat_ == nullptr) display_->update(progress_text(record, goal_));
  }
  plan_report(steps ? steps->step_s.median : 0, 1e9);
  interval_.clear();
  first_epoch_ = epoch_ + 1;
  loss_sum_ = 0;
  n_loss_ = 0;
}

void Trainer::tell_epoch() {
  if (!is_lead() || compat_ != nullptr || n_epoch_loss_ == 0) return;
  EpochRecord record{.at = position(), .n_samples = n_epoch_loss_, .loss = last_loss_, .time = compat_epoch_.time};
  if (recipe_.loss != "mse") record.top1_percent = compat_epoch_.top1_percent;
  display_->print(epoch_text(record, goal_));
}

// Of a long one, that it goes on.
void Trainer::tell_evaluation(std::uint64_t n_batches, core::Stopwatch& since_told) {
  if (!is_lead() || compat_ != nullptr || since_told.elapsed().value < report_interval.value) return;
  since_told = {};
  const double share = static_cast<double>(n_batches) / static_cast<double>(evaluation_batches_->n_batches());
  display_->update(evaluation_progress_text(position(), goal_, share));
}

// Collective.
void Trainer::finish() {
  const auto steady = steady_.reduce(world_);
  metrics::PhaseReport phases = metrics::reduce_phases(world_, topology_, timers_.sums());
  const auto data = gather_data(world_, recipe_, batches_.get(), evaluation_batches_.get());
  compat_end_.peak_bytes = peak_memory(world_).value;
  if (!is_lead()) return;
  FinalRecord record{.at = position(),
                     .is_within_epoch = batches_ && (n_steps_ == 0 || n_steps_ % batches_->n_batches() != 0),
                     .state = state_,
                     .message = message_,
                     .loss = n_epoch_loss_ > 0 ? mean(epoch_loss_, n_epoch_loss_) : last_loss_,
                     .n_ranks = static_cast<std::uint64_t>(world_.n_ranks()),
                     .n_nodes = topology_.n_nodes,
                     .global_batch = recipe_.batch,
                     .n_warmup_steps = n_warmup_steps,
                     .steady = steady,
                     .phases = std::move(phases),
                     .evaluation = evaluation_,
                     .data = data};
  record.rmse = rmse_of(recipe_, record.loss);
  if (profiler_ && profiler_->report()) directory_->log(*profiler_->report());
  directory_->finish(record);
  display_.reset();
  compat_end_.time = watch_.elapsed();
  if (compat_ != nullptr && compat_->on_end != nullptr) printer_.print(compat_->on_end(compat_run_, compat_end_));
  if (compat_ == nullptr && !options_.evaluate_only) printer_.print(final_text(record));
  if (profiler_) printer_.print("\n" + (profiler_->report() ? profile_text(*profiler_->report()) : no_profile_text));
  if (compat_ == nullptr) printer_.print(fmt::format("run         {}\n", core::printable(directory_->path())));
  if (options_.digest)
    printer_.print(fmt::format("digest      weights {} losses {}\n", learner_->digest(), losses_.hex()));
}

}  // namespace lockstep::training
