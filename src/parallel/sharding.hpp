// Which rank owns which part of the arenas: each bucket is divided into one slice per owner.
// Invariant: a pure value of slots, buckets and owners. A slice consists of whole units of its tensors, which are
// blocks of output channels, so that it is a slice of the logical tensors too; sums over blocks do not depend on the
// owners.
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

/// A slot is cut at multiples of this many elements from its begin: whole blocks.
[[nodiscard]] std::size_t unit_of(const Slot& slot) noexcept;

class Sharding {
 public:
  Sharding(std::span<const Slot> slots, std::span<const Bucket> buckets, std::size_t n_owners);

  [[nodiscard]] std::size_t n_owners() const noexcept { return n_owners_; }
  /// The parts of the buckets, one after another, that `owner` sums and updates; they may be empty.
  [[nodiscard]] std::vector<core::Slice> slices_of(std::size_t owner) const;

 private:
  std::size_t n_owners_;
  std::vector<std::vector<std::size_t>> cuts_{};  ///< of each bucket: where the owners' slices begin, and its end
};

/// The tensors in `slice`, cut into blocks of about least_unit elements: the same blocks for any slices of a bucket.
/// Sums that must not depend on the owners, such as the norm for clipping, are taken over blocks first.
[[nodiscard]] std::vector<SlotPart> blocks_in(std::span<const Slot> slots, const core::Slice& slice);

}  // namespace lockstep::parallel
