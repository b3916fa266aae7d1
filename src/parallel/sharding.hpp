// Which rank owns which part of the arenas: each bucket is divided into one slice per owner.
// Invariant: a pure value of slots, buckets and owners. A slice consists of whole units of its tensors, blocks of
// output channels, so it is also a slice of the logical tensors. Sums over blocks do not depend on the owners.
// Used by the synchronizer and the dry run.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/slice.hpp"
#include "parallel/bucket_plan.hpp"
#include "parallel/slots.hpp"

namespace lockstep::parallel {

/// Slices begin on a cache line, and units have about this many elements (4 KiB) if channels are smaller.
inline constexpr std::size_t unit_alignment = 16, least_unit = 1024;

/// Returns the unit at whose multiples a slot is cut: whole blocks.
[[nodiscard]] std::size_t unit_of(const Slot& slot) noexcept;

class Sharding {
 public:
  Sharding(std::span<const Slot> slots, std::span<const Bucket> buckets, std::size_t n_owners);

  [[nodiscard]] std::size_t n_owners() const noexcept { return n_owners_; }
  /// Returns the slices that `owner` sums and updates, one per bucket; they may be empty.
  [[nodiscard]] std::vector<core::Slice> slices_of(std::size_t owner) const;

 private:
  std::size_t n_owners_;
  std::vector<std::vector<std::size_t>> cuts_{};  ///< for each bucket: where the owners' slices begin, and its end
};

/// Returns the tensors in `slice`, cut into blocks of about least_unit elements: the same blocks for any slices of a
/// bucket. Sums that must not depend on the owners, such as the norm for clipping, are taken over blocks first.
[[nodiscard]] std::vector<SlotPart> blocks_in(std::span<const Slot> slots, const core::Slice& slice);

}  // namespace lockstep::parallel
