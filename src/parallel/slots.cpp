#include "parallel/slots.hpp"

#include "core/error.hpp"
#include "core/finite.hpp"

namespace lockstep::parallel {

std::size_t arena_elements(std::span<const Slot> slots) noexcept {
  return slots.empty() ? 0 : slots.back().slice.end();
}

void require_ordered(std::span<const Slot> slots) {
  for (std::size_t i = 1; i < slots.size(); ++i)
    core::require(slots[i - 1].slice.end() <= slots[i].slice.offset, "slots are ascending and do not overlap");
}

std::vector<Piece> pieces_in(std::span<const Slot> slots, const core::Slice& slice) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const core::Slice common = intersection(slots[i].slice, slice);
    if (!common.empty()) pieces.push_back({i, common});
  }
  return pieces;
}

std::optional<std::size_t> find_not_finite(std::span<const Slot> slots, std::span<const float> arena) {
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!core::all_finite(slots[i].slice.of(arena))) return i;
  return std::nullopt;
}

}  // namespace lockstep::parallel
