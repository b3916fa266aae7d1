#include "training/train/interval.hpp"

#include <algorithm>

#include "metrics/phase_report.hpp"

namespace lockstep::training {
namespace {

constexpr core::Seconds time_between_reports{2};
constexpr double most_to_first_report = 9;  // steps after the first one

}  // namespace

void Interval::begin(const Position& at) { plan(at.step, at.elapsed.value, most_to_first_report); }

std::optional<TrainRecord> Interval::report(const Position& at, double learning_rate, const Goal& goal) {
  const auto steps = steps_.reduce(world_);
  const metrics::PhaseReport phases = metrics::reduce_phases(world_, topology_, steps_.phases());
  std::optional<TrainRecord> record;
  if (steps) {
    record = make_train_record(at, agreed_.mean_loss(), learning_rate, *steps, phases, goal);
    record->first_epoch = first_epoch_;
  }
  plan(at.step, steps ? steps->step_s.median : 0, 1e9);
  forget(at);
  return record;
}

void Interval::restart(const Position& at) {
  plan(at.step, 0, most_to_first_report);
  forget(at);
}

void Interval::forget(const Position& at) noexcept {
  steps_.clear();
  first_epoch_ = at.epoch;
  agreed_ = {};
}

// Collective: uses rank 0's clock.
void Interval::plan(std::uint64_t n_steps, double step_s, double most_steps) {
  const double more = std::clamp(time_between_reports.value / std::max(step_s, 1e-9), 1.0, most_steps);
  next_report_ = n_steps + runtime::broadcast_value(world_, static_cast<std::uint64_t>(more));
}

}  // namespace lockstep::training
