#include "comm/schedule.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lockstep::comm {

void Schedule::occupy(int slot) {
  const auto index = static_cast<std::size_t>(slot);
  if (index >= busy_.size()) busy_.resize(index + 1, false);
  core::require(!busy_[index], "a slot holds one message at a time");
  busy_[index] = true;
}

void Schedule::send(int slot, int to, Region from) {
  if (from.slice.empty()) return;
  occupy(slot);
  steps_.push_back({.action = Action::send, .slot = slot, .peer = to, .target = {}, .first = from, .second = {}});
}

void Schedule::recv(int slot, int from, Region into) {
  if (into.slice.empty()) return;
  occupy(slot);
  steps_.push_back({.action = Action::recv, .slot = slot, .peer = from, .target = into, .first = {}, .second = {}});
}

void Schedule::wait(int slot) {
  const auto index = static_cast<std::size_t>(slot);
  if (index >= busy_.size() || !busy_[index]) return;
  busy_[index] = false;
  steps_.push_back({.action = Action::wait, .slot = slot, .peer = 0, .target = {}, .first = {}, .second = {}});
}

void Schedule::combine(Region target, Region first, Region second) {
  if (target.slice.empty()) return;
  steps_.push_back(
      {.action = Action::combine, .slot = 0, .peer = 0, .target = target, .first = first, .second = second});
}

void Schedule::copy(Region target, Region source) {
  if (target.slice.empty() || target == source) return;
  steps_.push_back({.action = Action::copy, .slot = 0, .peer = 0, .target = target, .first = source, .second = {}});
}

void Schedule::divide(Region target, int divisor) {
  if (target.slice.empty() || divisor == 1) return;
  divisor_ = divisor;
  steps_.push_back({.action = Action::divide, .slot = 0, .peer = 0, .target = target, .first = target, .second = {}});
}

Region Schedule::scratch(std::size_t count) {
  const Region reserved{Operand::scratch, {scratch_elements_, count}};
  scratch_elements_ += count;
  return reserved;
}

Schedule copy_alone(const Setting& setting) {
  Schedule schedule;
  schedule.copy({Operand::output, setting.whole()}, {Operand::input, setting.whole()});
  return schedule;
}

std::size_t count_segments(const Call& call, std::size_t count, std::size_t segment_bytes) noexcept {
  const std::size_t per_segment = std::max<std::size_t>(1, segment_bytes / call.element_size());
  return std::max<std::size_t>(1, (count + per_segment - 1) / per_segment);
}

}  // namespace lockstep::comm
