#include "nn/plan/parameter_slots.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace lockstep::nn {
namespace {

/// Sets the offsets of `slots`, which are those of plan.parameters. Returns the units of the network's parameters.
std::vector<std::optional<std::size_t>> set_places(const Network& network, const PassPlan& plan,
                                                   std::span<ArenaSlot> slots, const PlaceParameters& place) {
  std::vector<std::optional<std::size_t>> units(network.parameters().size());
  if (!place) {
    for (std::size_t at = 0; ArenaSlot & slot : slots) at = (slot.slice.offset = at) + slot.slice.count;
    return units;
  }
  std::vector<Unplaced> unplaced;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto& [parameter, node] = plan.parameters[i];
    const Parameter& described = network.parameters()[static_cast<std::size_t>(parameter)];
    unplaced.push_back({.name = described.name,
                        .unit = network.nodes()[node].unit,
                        .n_elements = slots[i].slice.count,
                        .is_vector = described.shape.size() == 1,
                        .is_shared = network.n_readers(parameter) > 1});
  }
  const std::vector<Placed> places = place(unplaced);
  core::require(places.size() == slots.size(), "each parameter has one place");
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto& [slice, unit] = places[i];
    core::require(slice.count == slots[i].slice.count, "a place has the size of its parameter");
    core::require(!unit || !unplaced[i].is_vector, "vectors are in no unit");
    slots[i].slice = slice;
    slots[i].unit = unit;
    units[static_cast<std::size_t>(slots[i].parameter)] = unit;
  }
  return units;
}

}  // namespace

ParameterSlots::ParameterSlots(const Network& network, const PassPlan& plan, std::vector<ArenaSlot> slots,
                               const PlaceParameters& place)
    : of_parameter_(network.parameters().size()), of_planned_(slots.size()) {
  core::require(slots.size() == plan.parameters.size(), "each planned parameter has one slot");
  units_ = {network, set_places(network, plan, slots, place)};
  std::vector<std::size_t> order(slots.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t planned) { return slots[planned].slice.offset; });
  for (const std::size_t planned : order) {
    const ArenaSlot& slot = slots[planned];
    core::require(slot.slice.offset % slot_multiple == 0 && slot.slice.offset >= n_elements(),
                  "places of parameters are aligned and do not overlap");
    of_planned_[planned] = of_parameter_[static_cast<std::size_t>(slot.parameter)] = slots_.size();
    slots_.push_back(slot);
  }
  std::vector<bool> is_complete(slots_.size());
  for (const std::size_t slot : of_planned_) {
    is_complete[slot] = true;
    std::size_t n = n_leading_.back();
    while (n < is_complete.size() && is_complete[n]) ++n;
    n_leading_.push_back(n);
  }
}

}  // namespace lockstep::nn
