#include "metrics/phase_timers.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/timer.hpp"

namespace lockstep::metrics {

std::string_view name(Phase phase) noexcept {
  switch (phase) {
    case Phase::data_wait: return "data_wait";
    case Phase::forward: return "forward";
    case Phase::backward: return "backward";
    case Phase::communication: return "communication";
    case Phase::optimizer: return "optimizer";
    case Phase::device: return "device";
    case Phase::evaluation: return "evaluation";
    case Phase::save: return "save";
    case Phase::other: break;
  }
  return "other";
}

PhaseTimes& PhaseTimes::operator+=(const PhaseTimes& more) noexcept {
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += more.seconds[i];
  return *this;
}

PhaseTimes& PhaseTimes::operator-=(const PhaseTimes& less) noexcept {
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] -= less.seconds[i];
  return *this;
}

core::Seconds PhaseTimes::total() const noexcept { return {std::accumulate(seconds.begin(), seconds.end(), 0.0)}; }

core::Seconds PhaseTimes::of_steps() const noexcept {
  return {total().value - (*this)[Phase::evaluation] - (*this)[Phase::save]};
}

PhaseTimers::PhaseTimers() noexcept : since_s_{core::now().value} {}

void PhaseTimers::account() noexcept {
  const double now_s = core::now().value;
  sums_[running_[n_running_ - 1].phase] += now_s - since_s_;
  since_s_ = now_s;
}

void PhaseTimers::begin(Phase phase) {
  core::require(n_running_ < most_nested, "phases are nested at most most_nested deep");
  account();
  const Phase around = running_[n_running_ - 1].phase;
  const bool is_opaque = around == Phase::evaluation || around == Phase::save;
  if (is_opaque) phase = around;
  running_[n_running_++] = {phase, sums_[phase]};
}

void PhaseTimers::end() {
  core::require(n_running_ > 1, "a phase that ends has begun");
  switch_back();
}

void PhaseTimers::switch_back() noexcept {
  account();
  const Running& ended = running_[n_running_ - 1];
  if (at_end_ && ended.phase != running_[n_running_ - 2].phase) {
    at_end_(ended.phase, {sums_[ended.phase] - ended.sum_at_begin_s});
    account();
  }
  --n_running_;
}

void PhaseTimers::reassign(Phase from, Phase to, core::Seconds time) noexcept {
  account();
  const double moved_s = std::clamp(time.value, 0.0, sums_[from] - at_last_lap_[from]);
  sums_[from] -= moved_s;
  sums_[to] += moved_s;
}

PhaseTimes PhaseTimers::sums() noexcept {
  account();
  return sums_;
}

PhaseTimes PhaseTimers::lap() noexcept {
  PhaseTimes lap = sums();
  lap -= at_last_lap_;
  at_last_lap_ = sums_;
  return lap;
}

}  // namespace lockstep::metrics
