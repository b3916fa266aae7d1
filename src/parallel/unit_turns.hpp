// The order in which passes need units, and where buckets lie in memory: at places of their own, or in a pool in whose
// places units take turns.
// Invariant: pure values, so all ranks agree without a message, and no address changes. Units that passes need at the
// same time share no memory.
// Used by the synchronizer and its parts, and by the dry run.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/slice.hpp"
#include "parallel/slots.hpp"

namespace lockstep::parallel {

/// A pass forward or backward through a network needs its units in an order.
struct UnitOrder {
  std::vector<std::size_t> units{};
  std::vector<std::size_t> turns{};  ///< by unit: its index in `units`
  std::vector<std::size_t> ends{};   ///< by unit: the last turn that begins before the pass is done with the unit
};

class UnitTurns {
 public:
  UnitTurns() = default;
  /// `reads`: by unit, in the order of the arena, the nodes of the network from the first that reads it to the last.
  /// `prefetch`: how many turns before its own a unit is gathered.
  UnitTurns(std::span<const core::Slice> reads, std::size_t prefetch);

  [[nodiscard]] std::size_t n_units() const noexcept { return forward_.units.size(); }
  [[nodiscard]] std::size_t prefetch() const noexcept { return prefetch_; }
  [[nodiscard]] const UnitOrder& order(bool is_backward) const noexcept { return is_backward ? backward_ : forward_; }

  /// Whether the parameters of both are needed, or are being gathered, at the same time.
  [[nodiscard]] bool parameters_meet(std::size_t a, std::size_t b) const noexcept;
  /// Whether a backward pass begins to write one gradient before the other is summed. Sums follow the order of the
  /// arena, and have one turn to end.
  [[nodiscard]] bool gradients_meet(std::size_t a, std::size_t b) const noexcept;

 private:
  std::size_t prefetch_ = 0;
  UnitOrder forward_{}, backward_{};
  std::vector<std::size_t> complete_{};  ///< by unit: the last turn of backward before it and all earlier ones are done
};

/// Whether two units are needed at the same time.
using UnitsMeet = std::function<bool(std::size_t, std::size_t)>;

class BucketPlaces {
 public:
  BucketPlaces() = default;
  /// Gives each bucket without a unit a place of its own. `units`: by bucket. The others share a pool behind them, in
  /// which only units that do not meet overlap: the largest is placed first, each at the lowest place that is free.
  BucketPlaces(std::vector<core::Slice> buckets, std::vector<std::optional<std::size_t>> units, const UnitsMeet& meet);
  /// All buckets lie as in the arena.
  explicit BucketPlaces(std::vector<core::Slice> buckets);

  [[nodiscard]] std::size_t n_elements() const noexcept { return n_elements_; }
  [[nodiscard]] std::size_t n_pool_elements() const noexcept { return n_elements_ - n_kept_; }
  /// Where a slice of a bucket of the arena lies.
  [[nodiscard]] core::Slice at(std::size_t bucket, const core::Slice& slice) const noexcept {
    return {slice.offset - buckets_[bucket].offset + offsets_[bucket], slice.count};
  }
  [[nodiscard]] core::Slice at(std::size_t bucket) const noexcept { return at(bucket, buckets_[bucket]); }
  [[nodiscard]] bool is_pooled(std::size_t bucket) const noexcept { return units_[bucket].has_value(); }
  /// The bucket of a unit of the pool; none if the unit is not in it.
  [[nodiscard]] std::optional<std::size_t> bucket_of(std::size_t unit) const noexcept;
  [[nodiscard]] bool overlap(std::size_t a, std::size_t b) const noexcept {
    return !intersection(at(a), at(b)).empty();
  }

 private:
  std::vector<core::Slice> buckets_{};
  std::vector<std::optional<std::size_t>> units_{};  ///< of the pool
  std::vector<std::size_t> offsets_{};
  std::size_t n_kept_ = 0, n_elements_ = 0;
};

/// What the pool holds as passes need one unit after another. A unit is gathered unless its place still holds it.
class HeldUnits {
 public:
  /// Both must outlive it.
  HeldUnits(const UnitTurns& turns, const BucketPlaces& places);

  /// Returns the units to gather, in order, when a pass begins to need `unit`; valid until the next call.
  [[nodiscard]] std::span<const std::size_t> need(std::size_t unit, bool is_backward);
  /// The parameters have changed.
  void forget() noexcept { is_held_.assign(is_held_.size(), false); }

 private:
  const UnitTurns& turns_;
  const BucketPlaces& places_;
  std::vector<bool> is_held_;
  std::vector<std::size_t> to_gather_{};
};

}  // namespace lockstep::parallel
