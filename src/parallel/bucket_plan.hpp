// How the arena is divided into buckets, which are communicated one after another.
// Invariant: buckets depend only on the slots, never on ranks or arrival.
// Used by the synchronizer.
#pragma once

#include <cstdint>
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
  core::Bytes last{std::uint64_t{1} << 20};   ///< small, because no computation is left to hide it behind
};

/// Returns buckets in the order of the arena, in which they become ready; together they are the whole arena. A bucket
/// contains whole slots, and ends where the next one begins, so padding between slots belongs to one bucket.
[[nodiscard]] std::vector<core::Slice> plan_buckets(std::span<const Slot> slots, const BucketOptions& options);

}  // namespace lockstep::parallel
