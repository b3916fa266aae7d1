#include "nn/host/storage.hpp"

#include <algorithm>

namespace lockstep::nn::host {

Place Storage::add(std::size_t n_bytes) {
  lifetimes_.push_back({n_bytes});
  return {Space::arena, lifetimes_.size() - 1, 0};
}

void Storage::use(const Place& place, int time) {
  if (place.space != Space::arena) return;
  Lifetime& lifetime = lifetimes_[place.index];
  const bool is_first = lifetime.last < lifetime.first;
  lifetime.first = is_first ? time : std::min(lifetime.first, time);
  lifetime.last = is_first ? time : std::max(lifetime.last, time);
}

void Storage::forget_between(const Place& place) { lifetimes_[place.index].is_forgotten = true; }

bool Storage::is_used(const Place& place, int time) const { return lifetimes_[place.index].last == time; }

dnnl::memory Storage::memory(const Desc& desc, const Place& place, int time) {
  use(place, time);
  auto& held = place.space == Space::input ? held_inputs_ : held_;
  held.push_back({dnnl::memory{desc, engine_, DNNL_MEMORY_NONE}, place});
  return held.back().memory;
}

void Storage::plan() { plan_ = plan_arena(lifetimes_); }

void Storage::rebase(const Bases& bases) {
  bases_ = bases;
  for (Held& held : held_) held.memory.set_data_handle(address(held.place));
}

void Storage::set_input(const std::byte* input) {
  // Primitives only read the input.
  input_ = const_cast<std::byte*>(input);
  for (Held& held : held_inputs_) held.memory.set_data_handle(address(held.place));
}

std::byte* Storage::address(const Place& place) const {
  const auto slot = [&] { return parameters_->slot_of(static_cast<int>(place.index)).slice.offset * sizeof(float); };
  switch (place.space) {
    case Space::arena: return bases_.arena + plan_.offsets[place.index] + place.offset;
    case Space::parameters: return bases_.parameters + slot() + place.offset;
    case Space::gradients: return bases_.gradients + slot() + place.offset;
    case Space::input: break;
  }
  return input_ + place.offset;
}

}  // namespace lockstep::nn::host
