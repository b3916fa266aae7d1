#include "parallel/sharding.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::parallel {
namespace {

/// Returns the boundary of a unit or tensor that is nearest to `at` in the arena.
std::size_t nearest_boundary(std::span<const Slot> slots, std::size_t at) noexcept {
  const auto after = std::ranges::upper_bound(slots, at, {}, [](const Slot& slot) { return slot.slice.offset; });
  if (after == slots.begin()) return at;
  const Slot& slot = *std::prev(after);
  const std::size_t unit = unit_of(slot);
  const std::size_t boundary = slot.slice.offset + (at - slot.slice.offset + unit / 2) / unit * unit;
  if (boundary < slot.slice.end()) return boundary;
  return after == slots.end() ? slot.slice.end() : after->slice.offset;
}

}  // namespace

std::size_t unit_of(const Slot& slot) noexcept {
  const std::size_t aligned = std::lcm(slot.block, unit_alignment);
  return (least_unit + aligned - 1) / aligned * aligned;
}

Sharding::Sharding(std::span<const Slot> slots, std::span<const Bucket> buckets, std::size_t n_owners)
    : n_owners_{n_owners} {
  for (const Bucket& bucket : buckets) {
    std::vector<std::size_t>& cuts = cuts_.emplace_back();
    for (std::size_t owner = 0; owner <= n_owners; ++owner) {
      const std::size_t even = core::partition(bucket.slice.count, n_owners, owner % n_owners).offset;
      const std::size_t at = owner == n_owners ? bucket.slice.end() : bucket.slice.offset + even;
      const bool is_inside = owner > 0 && owner < n_owners;
      cuts.push_back(is_inside ? std::clamp(nearest_boundary(slots, at), cuts.back(), bucket.slice.end()) : at);
    }
  }
}

std::vector<core::Slice> Sharding::slices_of(std::size_t owner) const {
  std::vector<core::Slice> slices;
  for (const std::vector<std::size_t>& cuts : cuts_)
    slices.push_back({.offset = cuts[owner], .count = cuts[owner + 1] - cuts[owner]});
  return slices;
}

std::vector<SlotPart> blocks_in(std::span<const Slot> slots, const core::Slice& slice) {
  std::vector<SlotPart> blocks;
  for (const SlotPart& part : parts_in(slots, slice)) {
    const std::size_t unit = unit_of(slots[part.slot]);
    for (std::size_t at = part.slice.offset; at < part.slice.end(); at += unit) {
      const std::size_t n = std::min(unit, part.slice.end() - at);
      const std::size_t n_blocks = std::max<std::size_t>(1, n / least_unit);
      for (std::size_t i = 0; i < n_blocks; ++i) {
        const core::Slice block = core::partition(n, n_blocks, i, unit_alignment);
        blocks.push_back({part.slot, {.offset = at + block.offset, .count = block.count}});
      }
    }
  }
  return blocks;
}

}  // namespace lockstep::parallel
