#include "nn/host/storage.hpp"

namespace lockstep::nn::host {

dnnl::memory Storage::memory(const Desc& desc, const Place& place, int time) {
  use(place, time);
  auto& held = place.space == Space::input ? held_inputs_ : held_;
  held.push_back({dnnl::memory{desc, engine_, DNNL_MEMORY_NONE}, place});
  return held.back().memory;
}

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
    case Space::arena: return bases_.arena + buffers_.offset(place.index) + place.offset;
    case Space::parameters: return bases_.parameters + slot() + place.offset;
    case Space::gradients: return bases_.gradients + slot() + place.offset;
    case Space::input: break;
  }
  return input_ + place.offset;
}

}  // namespace lockstep::nn::host
