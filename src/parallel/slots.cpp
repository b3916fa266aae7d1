#include "parallel/slots.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace lockstep::parallel {

std::size_t arena_elements(std::span<const Slot> slots) noexcept {
  return slots.empty() ? 0 : slots.back().offset + slots.back().n_elements;
}

void require_ordered(std::span<const Slot> slots) {
  for (std::size_t i = 1; i < slots.size(); ++i)
    core::require(slots[i - 1].offset + slots[i - 1].n_elements <= slots[i].offset, "slots are ascending and apart");
}

std::vector<Piece> pieces_in(std::span<const Slot> slots, comm::Slice slice) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::size_t begin = std::max(slots[i].offset, slice.offset);
    const std::size_t end = std::min(slots[i].offset + slots[i].n_elements, slice.offset + slice.count);
    if (begin < end) pieces.push_back({i, {begin, end - begin}});
  }
  return pieces;
}

std::optional<std::size_t> find_not_finite(std::span<const Slot> slots, std::span<const float> arena) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto values = arena.subspan(slots[i].offset, slots[i].n_elements);
    if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) return i;
  }
  return std::nullopt;
}

}  // namespace lockstep::parallel
