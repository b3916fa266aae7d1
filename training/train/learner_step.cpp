// How a learner makes a step: from a whole batch at once, in parts, in lanes, or by replaying an earlier step.
#include <fmt/format.h>

#include <utility>

#include "core/finite.hpp"
#include "training/train/learner.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {
namespace {

/// The numbers of a pass with `part` of `whole`, which is this rank's batch, or a lane of it.
core::StepNumbers numbers_of(const StepPlace& at, const data::Batch& whole, const data::Batch& part, bool begins_step) {
  return {.learning_rate = at.learning_rate,
          .sample_weight = 1.0f / static_cast<float>(whole.n_global),
          .epoch = at.epoch,
          .step = at.step,
          .share_of_step = whole.n > 0 ? static_cast<double>(part.n) / static_cast<double>(whole.n) : 1,
          .begins_step = begins_step};
}

}  // namespace

// Runs the parts of a batch that saves memory, one after another; adds up gradients.
template <class Run>
void Learner::for_each_part(const data::Batch& batch, const StepPlace& at, const Run& run) {
  bool begins_step = true;
  for (std::uint64_t i = 0; i < recipe_.accumulate; ++i) {
    const std::uint64_t begin = begin_of_part(recipe_, batch.n, i), n = begin_of_part(recipe_, batch.n, i + 1) - begin;
    const data::Batch part = batch.part(begin, n);
    run(Part{.batch = part,
             .numbers = numbers_of(at, batch, part, begins_step),
             .backward = i > 0 ? nn::Pass::backward_adding : nn::Pass::backward,
             .is_last = i + 1 == recipe_.accumulate});
    begins_step = begins_step && n == 0;
  }
}

// Gradients are summed while others are still computed, unless a rank of devices may have no samples in a group of
// ranks: it runs nothing beside its pass, so it reports gradients earlier among the sums of the group than others do.
void Learner::run_parts(const data::Batch& batch, const StepPlace& at) {
  const bool has_idle_ranks = enqueued_ != nullptr && group_sum_ && batch.n_global < recipe_.batch;
  const int n_local_lanes = lanes_ ? lanes_->n_local() : 1;
  for_each_part(batch, at, [&](const Part& part) {
    {
      const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::forward};
      enqueue(part.batch, nn::Pass::forward, part.numbers);
      inspect(part.batch, at);
    }
    const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::backward};
    completes_gradients_ = n_local_lanes == 1 && part.is_last && !has_idle_ranks;
    enqueue(part.batch, part.backward, part.numbers);
  });
}

// Searches now, because the pass can still be repeated: first the parameters that this rank owns, which the previous
// update wrote, then what the pass computed from all of them.
Learner::NotFinite Learner::find_not_finite() {
  NotFinite found;
  synchronizer_->visit(parallel::Access::kept, [&](const parallel::StoredPiece& piece) {
    if (found.is_parameter || piece.state != "parameter" || core::all_finite(piece.values)) return;
    found.is_parameter = true;
    found.where =
        fmt::format("parameter {}, after the previous update", synchronizer_->sharding().slots()[piece.slot].name);
  });
  if (!found.is_parameter) found.where = executor_->inspection()->find_not_finite();
  if (found.where.empty()) found.where = "the loss";
  return found;
}

// After a forward pass.
void Learner::inspect(const data::Batch& batch, const StepPlace& at) {
  const nn::Inspection* const inspection = executor_->inspection();
  if (inspection == nullptr || inspection->is_finite() || not_finite_) return;
  not_finite_ = find_not_finite();
  not_finite_->step = at.step;
  not_finite_->samples.assign(batch.ids.begin(), batch.ids.end());
  synchronizer_->direct()->halt();
}

// Each lane has its own running statistics, and sums that the tree adds up.
void Learner::run_lanes(const data::Batch& batch, const StepPlace& at) {
  const auto n_global = static_cast<std::size_t>(batch.n_global);
  const std::size_t mine = parallel::lane_samples(n_global, static_cast<int>(recipe_.lanes), lanes_->first()).offset;
  std::vector<double> losses;
  of_lanes_ = {};
  for (int local = 0; local < lanes_->n_local(); ++local) {
    const core::Slice lane = parallel::lane_samples(n_global, static_cast<int>(recipe_.lanes), lanes_->first() + local);
    statistics_->begin_lane(static_cast<std::size_t>(local));
    run_parts(batch.part(lane.offset - mine, lane.count), at);
    statistics_->end_lane(static_cast<std::size_t>(local));
    lanes_->lane_done(local);
    const nn::LossSums of_lane = executor_->sums();
    losses.push_back(of_lane.loss);
    of_lanes_ += of_lane;
  }
  of_lanes_.loss = parallel::sum_lanes(losses);
}

// Collective.
void Learner::run(const data::Batch& batch, const StepPlace& at) {
  if (lanes_) return run_lanes(batch, at);
  // In a smaller batch some ranks have more samples than others; each rank moves the running statistics by its share.
  const bool is_uneven = batch.n_global < recipe_.batch;
  if (is_uneven) statistics_->use_mean();
  run_parts(batch, at);
  if (is_uneven) statistics_->use_mean(batch.n);
}

// Collective: sums the gradients of all ranks and updates the parameters.
void Learner::update(const core::StepNumbers& numbers) {
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::optimizer};
  const double waited = synchronizer_->waited().value;
  const bool may_update = synchronizer_->step(numbers, recipe_.clip_norm, stream_);
  executor_->end_sums(stream_);
  const core::Seconds more{synchronizer_->waited().value - waited};
  timers_.reassign(metrics::Phase::optimizer, metrics::Phase::communication, more);
  if (!may_update) statistics_->restore();
}

// Whether the device can replay steps, and all ranks do the same as in other steps; otherwise a rank's collectives
// might not match. Only the last part of a batch has collectives, because groups over ranks have no parts
// (check_ranks()).
bool Learner::is_recorded(const data::Batch& batch) const {
  const auto n_ranks = static_cast<std::uint64_t>(world_.n_ranks());
  return recipe_.graph != Graph::off && enqueued_ != nullptr && (!group_sum_ || group_sum_->only_enqueues()) &&
         !executor_->layer_times().is_profiling() && batch.n_global == recipe_.batch &&
         batch.n_global / n_ranks >= recipe_.accumulate &&
         (recipe_.order != data::Order::torch || batch.n_global % n_ranks == 0);
}

// Collective. Parts that differ only in their samples share one recording; the last includes the update if that can be
// recorded.
void Learner::run_recorded(const data::Batch& batch, const StepPlace& at) {
  const core::StepNumbers numbers = numbers_of(at, batch, batch, true);
  const bool updates = recipe_.graph == Graph::step && enqueued_->can_be_recorded();
  {
    const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::forward};
    if (updates) enqueued_->send(numbers, stream_);
    for_each_part(batch, at, [&](const Part& part) {
      executor_->send(part.batch, part.numbers, *this, stream_);
      completes_gradients_ = updates && part.is_last;
      recordings_.run({part.batch.n, part.backward, part.is_last}, stream_, [&] {
        executor_->enqueue_sent(part.backward, *this, stream_);
        if (completes_gradients_) enqueued_->enqueue_sent(recipe_.clip_norm, stream_);
      });
    });
  }
  if (!updates) return update(numbers);
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::optimizer};
  enqueued_->end_step(stream_);
  executor_->end_sums(stream_);
}

// Returns the report of the step before, if that is done.
parallel::StepReport Learner::begin_step(const data::Batch& batch, const StepPlace& at) {
  parallel::StepReport before;
  if (enqueued_ == nullptr) before = report_last();
  std::swap(made_, made_before_);
  made_.step = at.step;
  made_.ids.assign(batch.ids.begin(), batch.ids.end());
  ++n_unreported_;
  statistics_->keep();
  return before;
}

void Learner::compute_gradients(const data::Batch& batch, const StepPlace& at) {
  begin_step(batch, at);
  run(batch, at);
}

parallel::StepReport Learner::step(const data::Batch& batch, const StepPlace& at) {
  parallel::StepReport before = begin_step(batch, at);
  const comm::Sent sent_before = of_synchronizer_->sent();
  if (is_recorded(batch)) {
    run_recorded(batch, at);
  } else {
    run(batch, at);
    update(numbers_of(at, batch, batch, true));
  }
  sent_.sent += of_synchronizer_->sent() - sent_before;
  ++sent_.n_steps;
  if (enqueued_ != nullptr) before = report_before_last();
  before.replica = synchronizer_->guard().replica_hash();
  return before;
}

}  // namespace lockstep::training
