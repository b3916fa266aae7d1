// The trainer's reports as records.
#include <fmt/format.h>

#include <algorithm>

#include "training/recipe/specs.hpp"
#include "training/run/info.hpp"
#include "training/train/forecast.hpp"
#include "training/train/trainer.hpp"

namespace lockstep::training {

Position Trainer::position() const {
  const bool is_through = state_.n_agreed >= setup_.goal.n_steps && state_.of_epoch.n_steps == 0;
  return {.epoch = state_.epoch + (is_through ? 0 : 1),
          .step = state_.n_steps,
          .samples_seen = state_.samples_seen,
          .elapsed = watch_.elapsed()};
}

// What a checkpoint of now would hold.
Snapshot Trainer::snapshot() const {
  Snapshot now{.at = position(), .state = state_};
  if (is_epoch_over_) now.state.begin_next_epoch();
  return now;
}

// On rank 0.
void Trainer::tell_forecast() {
  if (!limit_.is_known() || epoch_time_.value <= 0) return;
  run_.tell(&Observer::epoch_forecast,
            ForecastRecord{.epoch = position().epoch,
                           .needed = epoch_time_,
                           .left = {std::max(limit_.left().value - limit_.reserve().value, 0.0)}});
}

EpochRecord Trainer::epoch_record(const Position& begin) const {
  const AgreedSums& epoch = state_.of_epoch;
  EpochRecord record{.at = position(),
                     .n_samples = epoch.n_samples,
                     .n_steps = state_.n_steps - begin.step,
                     .loss = epoch.mean_loss(),
                     .learning_rate = state_.learning_rate};
  if (recipe_.loss != nn::Loss::mse) record.top1_percent = epoch.top1_percent();
  record.time = {record.at.elapsed.value - begin.elapsed.value};
  record.samples_per_s =
      static_cast<double>(state_.samples_seen - begin.samples_seen) / std::max(record.time.value, 1e-9);
  return record;
}

EvaluationRecord Trainer::evaluation_record(const nn::LossSums& sums, core::Seconds time) const {
  EvaluationRecord record{
      .at = position(), .n_samples = sums.n, .loss = mean(sums.loss, sums.n), .n_top1 = sums.n_top1, .time = time};
  record.rmse = rmse_of(recipe_, record.loss);
  if (recipe_.loss == nn::Loss::mse) return record;
  record.top1_percent = 100 * mean(static_cast<double>(sums.n_top1), sums.n);
  if (constexpr std::size_t of_all = 5; setup_.batches.evaluation->info().spec.classes.size() > of_all)
    record.top5_percent = 100 * mean(static_cast<double>(sums.n_top5), sums.n);
  return record;
}

// Collective.
FinalRecord Trainer::final_record() {
  const Batches* const training = setup_.batches.training.get();
  const AgreedSums& epoch = state_.of_epoch;
  FinalRecord record{
      .at = position(),
      .is_within_epoch = training != nullptr && (state_.n_steps == 0 || state_.n_steps % training->n_batches() != 0),
      .state = ending_.status,
      .message = ending_.message,
      .loss = epoch.n_samples > 0 ? epoch.mean_loss() : state_.epoch_loss,
      .n_ranks = static_cast<std::uint64_t>(world_.n_ranks()),
      .n_nodes = topology_.n_nodes,
      .global_batch = recipe_.batch,
      .n_warmup_steps = warmup_steps,
      .steady = steady_.reduce(world_),
      .phases = metrics::reduce_phases(world_, topology_, timers_.sums()),
      .evaluation = state_.evaluation,
      .data = gather_data(world_, recipe_, training, setup_.batches.evaluation.get()),
      .peak_memory = peak_memory(world_)};
  record.rmse = rmse_of(recipe_, record.loss);
  record.forecast = forecast_;
  if (forecast_)
    record.measured = measure_use(world_, recipe_, learner_, record.peak_memory,
                                  {record.phases.mean_s(metrics::Phase::communication)});
  if (options_.digest) {
    const std::string of_weights = learner_.digest();
    if (world_.rank() == 0) record.digest = fmt::format("weights {} losses {}", of_weights, state_.digest_of_losses());
  }
  return record;
}

}  // namespace lockstep::training
