#include "parallel/slots.hpp"

#include <algorithm>

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

std::vector<SlotPart> parts_in(std::span<const Slot> slots, core::Slice slice) {
  std::vector<SlotPart> parts;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const core::Slice part = intersection(slots[i].slice, slice);
    if (!part.empty()) parts.push_back({i, part});
  }
  return parts;
}

core::Slice rows_of(const Slot& slot, const core::Slice& part) noexcept {
  const auto row_at = [&slot](std::size_t at) {
    return std::min((at - slot.slice.offset) / slot.block * slot.block_rows, slot.n_rows);
  };
  return {row_at(part.offset), row_at(part.end()) - row_at(part.offset)};
}

std::optional<std::size_t> find_not_finite(std::span<const Slot> slots, std::span<const float> arena) {
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!core::all_finite(slots[i].slice.of(arena))) return i;
  return std::nullopt;
}

}  // namespace lockstep::parallel
