#include "parallel/sharding.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "comm/collective.hpp"

namespace lockstep::parallel {
namespace {

/// Returns the place nearest to `at` in the arena where a tensor begins or may be cut, or one in the gap behind it.
std::size_t nearest_cut(std::span<const Slot> slots, std::size_t at) noexcept {
  const auto after = std::ranges::upper_bound(slots, at, {}, [](const Slot& slot) { return slot.slice.offset; });
  if (after == slots.begin()) return at;
  const Slot& slot = *std::prev(after);
  const std::size_t length = cut_length(slot);
  const std::size_t cut = slot.slice.offset + (at - slot.slice.offset + length / 2) / length * length;
  return after == slots.end() ? cut : std::min(cut, after->slice.offset);
}

}  // namespace

std::size_t cut_length(const Slot& slot) noexcept {
  const std::size_t aligned = std::lcm(slot.block, alignment);
  return (block_elements + aligned - 1) / aligned * aligned;
}

Sharding::Sharding(std::vector<Slot> slots, std::vector<core::Slice> buckets, std::size_t n_owners, bool is_order_fixed)
    : slots_{std::move(slots)}, buckets_{std::move(buckets)}, slices_(n_owners) {
  require_ordered(slots_);
  for (const core::Slice& bucket : buckets_) {
    const comm::Call call{
        .collective = comm::Collective::reduce_scatter, .n_elements = bucket.count, .is_order_fixed = is_order_fixed};
    const auto cut_at = [&](std::size_t place) {
      return place == bucket.count ? bucket.end() : std::min(nearest_cut(slots_, bucket.offset + place), bucket.end());
    };
    for (std::size_t owner = 0; owner < n_owners; ++owner) {
      const core::Slice part = call.part(static_cast<int>(owner), static_cast<int>(n_owners));
      const std::size_t begin = cut_at(part.offset);
      slices_[owner].push_back({begin, cut_at(part.end()) - begin});
    }
  }
}

std::size_t Sharding::n_complete(std::size_t slot) const noexcept {
  const std::size_t end = slot + 1 < slots_.size() ? slots_[slot + 1].slice.offset : n_elements();
  const auto first_incomplete = std::ranges::upper_bound(buckets_, end, {}, &core::Slice::end);
  return static_cast<std::size_t>(first_incomplete - buckets_.begin());
}

std::span<const core::Slice> Sharding::slices_of(std::size_t owner) const noexcept {
  return owner < slices_.size() ? std::span<const core::Slice>{slices_[owner]} : std::span<const core::Slice>{};
}

std::vector<Piece> Sharding::pieces_of(std::size_t owner) const {
  std::vector<Piece> pieces;
  for (const core::Slice& slice : slices_of(owner))
    for (const Piece& piece : pieces_in(slots_, slice)) pieces.push_back(piece);
  return pieces;
}

std::vector<Piece> blocks_in(std::span<const Slot> slots, const core::Slice& slice) {
  std::vector<Piece> blocks;
  for (const auto& [slot, whole] : pieces_in(slots, slice)) {
    const std::size_t length = cut_length(slots[slot]);
    for (std::size_t at = whole.offset; at < whole.end(); at += length) {
      const std::size_t n = std::min(length, whole.end() - at);
      const std::size_t n_blocks = std::max<std::size_t>(1, n / block_elements);
      for (std::size_t i = 0; i < n_blocks; ++i) {
        const core::Slice block = core::partition(n, n_blocks, i, alignment);
        blocks.push_back({slot, {.offset = at + block.offset, .count = block.count}});
      }
    }
  }
  return blocks;
}

}  // namespace lockstep::parallel
