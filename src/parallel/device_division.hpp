// How devices divide the arenas: what each rank keeps, updates, and sends to the others.
// Invariant: pure values, on which all ranks agree without a message. The parts of a bucket are equal if the blocks of
// its tensors allow it, because libraries have faster collectives for these. Slots without a unit stay whole.
// Used by the synchronizer of devices, and by forecasts of memory and traffic.
#pragma once

#include <cstddef>
#include <vector>

#include "core/slice.hpp"
#include "parallel/kept_elements.hpp"
#include "parallel/sharding.hpp"
#include "parallel/strategy.hpp"

namespace lockstep::parallel {

/// A slice of the arena, and where it begins in arrays that hold only the slices of a rank.
struct KeptSlice {
  core::Slice slice{};
  std::size_t begin = 0;
};

class DeviceDivision {
 public:
  /// Slots in units precede the others; units are ascending. One rank divides nothing.
  DeviceDivision(Strategy strategy, std::vector<Slot> slots, const BucketOptions& buckets, std::size_t n_ranks);

  /// Its owners are the ranks: of parts that only they update, and of parts that they save of what all ranks have.
  [[nodiscard]] const Sharding& sharding() const noexcept { return sharding_; }
  /// The first of the buckets: their parts are those of Call::part(), and each rank updates its own. All ranks update
  /// the other buckets.
  [[nodiscard]] std::size_t n_divided() const noexcept { return n_divided_; }
  [[nodiscard]] bool divides() const noexcept { return n_divided_ > 0; }

  /// What a rank updates, and keeps the states of: its parts, one for each divided bucket, then all that is not
  /// divided. If nothing is, the whole arena.
  [[nodiscard]] std::vector<KeptSlice> updated_by(std::size_t rank) const;
  /// Call::cuts of a divided bucket; empty for equal parts.
  [[nodiscard]] std::vector<std::size_t> cuts_of(std::size_t bucket) const;

 private:
  std::size_t n_divided_ = 0;
  Sharding sharding_;
};

[[nodiscard]] std::size_t n_elements(const std::vector<KeptSlice>& slices) noexcept;

/// `has_weights`: passes read 16-bit weights, so a rank has only the float32 parameters that it updates.
[[nodiscard]] KeptElements count_kept(const DeviceDivision& division, bool has_weights);

}  // namespace lockstep::parallel
