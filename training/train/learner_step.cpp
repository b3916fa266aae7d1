// How a step computes its gradients: from a whole batch at once, in parts, in lanes, or by replaying an earlier step.
#include <fmt/format.h>

#include <utility>

#include "core/finite.hpp"
#include "training/train/learner.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {

/// Searches now, because the pass can still be repeated: for what the previous update left, or what the pass computed
/// from it.
std::string Learner::find_not_finite() const {
  const auto slots = synchronizer_->sharding().slots();
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!core::all_finite(synchronizer_->values(i)))
      return fmt::format("parameter {}, after the previous update", slots[i].name);
  const std::string node = executor_->inspection()->find_not_finite();
  return node.empty() ? "the loss" : node;
}

// Runs the parts of a batch that saves memory, one after another; adds up gradients.
template <class Run>
void Learner::for_each_part(const data::Batch& batch, core::StepNumbers numbers, const Run& run) {
  numbers.begins_step = true;
  for (std::uint64_t i = 0; i < recipe_.accumulate; ++i) {
    const std::uint64_t begin = begin_of_part(recipe_, batch.n, i), n = begin_of_part(recipe_, batch.n, i + 1) - begin;
    numbers.share_of_step = batch.n > 0 ? static_cast<double>(n) / static_cast<double>(batch.n) : 1;
    run(Part{.batch = batch.part(begin, n),
             .numbers = numbers,
             .backward = i > 0 ? nn::Pass::backward_adding : nn::Pass::backward,
             .is_last = i + 1 == recipe_.accumulate});
    if (n > 0) numbers.begins_step = false;
  }
}

// Gradients are summed while others are still computed, unless a rank may have no samples in a group of ranks. Such a
// rank has all its gradients at once, before or after the sums of the group, so their order would differ from that of
// other ranks.
void Learner::run_parts(const data::Batch& batch, const core::StepNumbers& numbers) {
  const bool has_idle_ranks = device_group_sum_ && batch.n_global < recipe_.batch;
  for_each_part(batch, numbers, [&](const Part& part) {
    {
      const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::forward};
      executor_->enqueue(part.batch, nn::Pass::forward, part.numbers, *this, stream_);
      const nn::Inspection* const inspection = executor_->inspection();
      if (inspection != nullptr && !inspection->is_finite() && !not_finite_) {
        not_finite_ = {numbers.step, find_not_finite(), {part.batch.ids.begin(), part.batch.ids.end()}};
        synchronizer_->direct()->halt();
      }
    }
    const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::backward};
    completes_gradients_ = !lanes_ && part.is_last && !has_idle_ranks;
    executor_->enqueue(part.batch, part.backward, part.numbers, *this, stream_);
  });
}

// Whether all ranks do the same as in other steps, on a device; otherwise a rank's collectives might not match. Only
// the last part of a batch has collectives, because groups over ranks have no parts (check_ranks()).
bool Learner::is_recorded(const data::Batch& batch) const {
  const auto n_ranks = static_cast<std::uint64_t>(world_.n_ranks());
  return recipe_.graph != "off" && !runtime::is_host_the_device() &&
         (!device_group_sum_ || device_group_sum_->only_enqueues()) && !executor_->layer_times().is_profiling() &&
         batch.n_global == recipe_.batch && batch.n_global / n_ranks >= recipe_.accumulate &&
         (recipe_.order != "torch" || batch.n_global % n_ranks == 0);
}

template <class Enqueue>
runtime::Recording Learner::record(const Enqueue& enqueue) try {
  return stream_.record(enqueue);
} catch (const core::Error& error) {
  core::Problem problem = error.problem();
  problem.where = "recording a step";
  problem.fix = "use --graph off, which enqueues each step separately";
  throw core::Error{error.code(), problem, error.location()};
}

// The first time, enqueues directly, because libraries allocate and choose then.
template <class Enqueue>
void Learner::replay(Recorded& recorded, const Enqueue& enqueue) {
  if (recorded.n_made++ == 0) return enqueue();
  if (recorded.n_made == 2) recorded.recording = record(enqueue);
  stream_.replay(recorded.recording);
}

// Parts that differ only in their samples share one recording.
void Learner::run_recorded(const data::Batch& batch, core::StepNumbers numbers) {
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::forward};
  parallel::EnqueuedSteps& update = *synchronizer_->enqueued();
  is_update_enqueued_ = recipe_.graph == "step" && update.can_be_recorded();
  if (is_update_enqueued_) update.send(numbers, stream_);
  numbers.sample_weight = 1.0f / static_cast<float>(batch.n_global);
  for_each_part(batch, numbers, [&](const Part& part) {
    executor_->send(part.batch, part.numbers, *this, stream_);
    completes_gradients_ = is_update_enqueued_ && part.is_last;
    replay(recorded_[{part.batch.n, part.backward, part.is_last}], [&] {
      executor_->enqueue_sent(part.backward, *this, stream_);
      if (completes_gradients_) update.enqueue_sent(recipe_.clip_norm, stream_);
    });
  });
}

// Each lane has its own running statistics, and sums that the tree adds up.
void Learner::run_lanes(const data::Batch& batch, const core::StepNumbers& numbers) {
  const auto n_global = static_cast<std::size_t>(batch.n_global);
  const std::size_t mine = parallel::lane_samples(n_global, static_cast<int>(recipe_.lanes), lanes_->first()).offset;
  lane_losses_.clear();
  for (int local = 0; local < lanes_->n_local(); ++local) {
    const core::Slice lane = parallel::lane_samples(n_global, static_cast<int>(recipe_.lanes), lanes_->first() + local);
    const auto statistics =
        std::span{statistics_}.subspan(static_cast<std::size_t>(local) * n_statistics_, n_statistics_);
    set_statistics(statistics);
    run_parts(batch.part(lane.offset - mine, lane.count), numbers);
    copy_statistics(statistics);
    lanes_->lane_done(local);
    const nn::LossSums of_lane = executor_->sums();
    lane_losses_.push_back(of_lane.loss);
    of_lanes_ += of_lane;
  }
  of_lanes_.loss = parallel::sum_lanes(lane_losses_);
}

void Learner::compute_gradients(const data::Batch& batch, core::StepNumbers numbers) {
  if (runtime::is_host_the_device()) report_before_ = report();
  std::swap(made_, made_before_);
  made_.step = numbers.step;
  made_.ids.assign(batch.ids.begin(), batch.ids.end());
  ++n_unreported_;
  keep_statistics();
  is_update_enqueued_ = false;
  if (is_recorded(batch)) return run_recorded(batch, numbers);
  numbers.sample_weight = 1.0f / static_cast<float>(batch.n_global);
  if (lanes_) return run_lanes(batch, numbers);
  // In a smaller batch some ranks have more samples than others; each rank moves the running statistics by its share.
  const bool is_uneven = batch.n_global < recipe_.batch;
  if (is_uneven) set_statistics(mean_statistics(1));
  run_parts(batch, numbers);
  if (is_uneven) set_statistics(mean_statistics(batch.n));
}

}  // namespace lockstep::training
