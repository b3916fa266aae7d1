#include "nn/host/storage.hpp"

namespace lockstep::nn::host {

dnnl::memory Storage::memory(const Desc& desc, const Place& place, int time) {
  use(place, time);
  auto& held = place.space == Space::input ? held_inputs_ : held_;
  held.push_back({dnnl::memory{desc, engine_, DNNL_MEMORY_NONE}, place});
  return held.back().memory;
}

void Storage::rebase(std::byte* arena) {
  arena_ = arena;
  for (Held& held : held_) held.memory.set_data_handle(address(held.place));
}

void Storage::set_input(const std::byte* input) {
  // Primitives only read the input.
  input_ = const_cast<std::byte*>(input);
  for (Held& held : held_inputs_) held.memory.set_data_handle(address(held.place));
}

std::byte* Storage::address(const Place& place) const {
  // Layers only read parameters.
  const auto in = [](const float* slot) { return reinterpret_cast<std::byte*>(const_cast<float*>(slot)); };
  switch (place.space) {
    case Space::arena: return arena_ + buffers_.offset(place.index) + place.offset;
    case Space::parameters: return in(slots_[place.index].parameters.data()) + place.offset;
    case Space::gradients: return in(slots_[place.index].gradients.data()) + place.offset;
    case Space::input: break;
  }
  return input_ + place.offset;
}

}  // namespace lockstep::nn::host
