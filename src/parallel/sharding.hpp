// How the arenas are divided: into buckets, which are communicated one after another, each bucket into one slice for
// each owner on a node, a rank that sums it, and these slices perhaps among nodes, of which each updates a part.
// Invariant: pure values, on which all ranks agree without a message. Slices are those of comm::Call::part(), but each
// cut moves to the nearest place where a tensor or one of its blocks (Slot::block) begins. So a slice is also a slice
// of the logical tensors. In units of plan_units() a cut moves only if a tensor's blocks do not divide block_elements.
// Sums over blocks_in() do not depend on the owners.
// Used by the synchronizer, its callers and the dry run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/slice.hpp"
#include "core/units.hpp"
#include "parallel/slots.hpp"
#include "parallel/strategy.hpp"

namespace lockstep::parallel {

/// No bucket exceeds its size unless a single slot does.
struct BucketOptions {
  core::Bytes target{std::uint64_t{25} << 20};
  core::Bytes first{std::uint64_t{1} << 20};  ///< small, so that communication starts early
  core::Bytes last{std::uint64_t{1} << 20};   ///< small, because no computation is left to hide it behind
};

/// Returns buckets in the order of the arena, in which they become ready; together they are the whole arena. They
/// depend on the slots alone. A bucket contains whole slots, and ends where the next one begins, so padding between
/// slots belongs to one bucket.
[[nodiscard]] std::vector<core::Slice> plan_buckets(std::span<const Slot> slots, const BucketOptions& options);

/// Likewise, but each unit (Slot::unit) is one bucket. Slots between units, which are in none, have buckets as above.
[[nodiscard]] std::vector<core::Slice> plan_unit_buckets(std::span<const Slot> slots, const BucketOptions& options);

/// Which ranks share an arena of parameters, and which of them are owners.
struct Placement {
  std::vector<int> nodes;  ///< of each rank: the group that shares memory
  int n_nodes = 1;
  /// Ranks of each node that own slices: as many as the smallest node has, so every node has one owner per slice.
  int n_owners = 1;

  /// Whether a rank owns nothing: a node has more ranks than the smallest one.
  [[nodiscard]] bool has_idle_ranks() const noexcept {
    return nodes.size() > static_cast<std::size_t>(n_nodes) * static_cast<std::size_t>(n_owners);
  }
};

/// `nodes`: as a Transport numbers them. In a deterministic run the ranks of a node must be a subtree of the tree over
/// all ranks. If they are not (nodes of different size, or ranks placed cyclically), each rank counts as a node.
[[nodiscard]] Placement place(const std::vector<int>& nodes, bool is_deterministic);

/// Returns the length at whose multiples a slot may be cut: whole blocks of channels, and about block_elements if they
/// are smaller.
[[nodiscard]] std::size_t cut_length(const Slot& slot) noexcept;

/// What one rank does with one bucket.
struct Share {
  core::Slice summed{};   ///< it sums this slice of its node's gradients, and writes it of its node's parameters
  core::Slice updated{};  ///< it updates this part of `summed`, and keeps its states
  /// The parts of all nodes, in order: where they begin in `summed`, and the end. Empty if each node updates all of it.
  std::vector<std::size_t> cuts{};

  [[nodiscard]] bool is_divided() const noexcept { return !cuts.empty(); }
  /// `updated`, from the begin of `summed`.
  [[nodiscard]] core::Slice part() const noexcept { return updated.seen_from(summed.offset); }
};

class Sharding {
 public:
  /// `buckets` are ascending and together the whole arena; each begins with a slot. `is_order_fixed`: as in the
  /// comm::Call of a reduce-scatter that gives owners their slices; where whole buckets are summed, no order matters.
  /// `n_owners`: of a node. If `n_nodes` is greater than 1, so many nodes divide the slices of these owners, except in
  /// buckets with rows, of which few are touched: gathering whole tables would send more than it saves. Then slices lie
  /// in the order of owners.
  Sharding(std::vector<Slot> slots, std::vector<core::Slice> buckets, std::size_t n_owners, bool is_order_fixed = false,
           std::size_t n_nodes = 1);

  [[nodiscard]] std::span<const Slot> slots() const noexcept { return slots_; }
  /// The number of elements of an arena.
  [[nodiscard]] std::size_t n_elements() const noexcept { return arena_elements(slots_); }

  [[nodiscard]] std::span<const core::Slice> buckets() const noexcept { return buckets_; }
  /// The unit of each bucket; none if its slots are in no unit.
  [[nodiscard]] std::vector<std::optional<std::size_t>> units() const;
  [[nodiscard]] std::size_t bucket_of(std::size_t slot) const noexcept;
  /// Returns how many buckets are complete once `slot` and all earlier slots are.
  [[nodiscard]] std::size_t n_complete(std::size_t slot) const noexcept;

  /// On each node.
  [[nodiscard]] std::size_t n_owners() const noexcept { return slices_.size() / n_nodes_; }
  /// Among which slices are divided.
  [[nodiscard]] std::size_t n_nodes() const noexcept { return n_nodes_; }
  /// Returns the slices that `owner` updates, one per bucket; they may be empty. Owner i * n_nodes() + k has part k of
  /// the slices of owner i of a node. Returns none if there is no such owner.
  [[nodiscard]] std::span<const core::Slice> slices_of(std::size_t owner) const noexcept;
  /// Returns the shares of an owner of a node with part `part` of n_nodes(), one per bucket; none if there is no such
  /// owner.
  [[nodiscard]] std::vector<Share> shares_of(std::size_t owner, std::size_t part = 0) const;

 private:
  [[nodiscard]] bool is_divided(const core::Slice& bucket) const noexcept;
  [[nodiscard]] std::vector<std::size_t> cut(const core::Slice& bucket, std::size_t n_parts) const;

  std::vector<Slot> slots_;
  std::vector<core::Slice> buckets_;
  std::size_t n_nodes_;
  std::vector<std::vector<core::Slice>> slices_;  ///< by owner
};

/// The sharding of a host's synchronizer, from which traffic and memory are known before it exists. A unit with rows is
/// none: its slots stay whole, because nobody gathers a part of a unit.
[[nodiscard]] Sharding make_sharding(Strategy strategy, std::vector<Slot> slots, const BucketOptions& buckets,
                                     const Placement& placement);

/// Returns the tensors in `slice`, cut into blocks of about block_elements: the same blocks for any slices of a bucket.
/// Sums that must not depend on the owners, such as the norm for clipping, are taken over blocks first.
[[nodiscard]] std::vector<Piece> blocks_in(std::span<const Slot> slots, const core::Slice& slice);

}  // namespace lockstep::parallel
