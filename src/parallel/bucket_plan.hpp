// How the arena is cut: into buckets, communicated one after another, and each bucket into slices with one owner.
// Invariant: buckets depend on the slots alone, slices on the bucket and the number of owners; never on arrival.
// Used by the synchronizer.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/slice.hpp"
#include "core/units.hpp"
#include "parallel/slots.hpp"

namespace lockstep::parallel {

/// No bucket exceeds its size unless a single slot does.
struct BucketOptions {
  core::Bytes target{std::uint64_t{25} << 20};
  core::Bytes first{std::uint64_t{1} << 20};  ///< small, so that communication starts early
  core::Bytes last{std::uint64_t{1} << 20};   ///< small, as nothing is left to hide it behind
};

/// A contiguous part of the arena, and the slots in it.
struct Bucket {
  core::Slice slice;         ///< up to where the next bucket begins, so padding between slots belongs to one
  std::size_t end_slot = 0;  ///< complete once all slots before this one are
};

/// Buckets in the order in which backward completes them; together the whole arena.
[[nodiscard]] std::vector<Bucket> plan_buckets(std::span<const Slot> slots, const BucketOptions& options);

/// Slices begin at multiples of so many elements (4 KiB) from where their bucket begins. Sums that must not depend on
/// the number of owners, such as the norm for clipping, are first taken over blocks of this size.
inline constexpr std::size_t slice_grain = 1024;

/// The part of a bucket that `owner` of `n_owners` sums and updates; may be empty.
[[nodiscard]] core::Slice owned_slice(const core::Slice& bucket, std::size_t n_owners, std::size_t owner) noexcept;

}  // namespace lockstep::parallel
