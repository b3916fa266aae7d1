// The ways in which ranks of one node use shared memory: flat for short vectors, sliced for long ones, and both in
// groups.
// Invariant: no locks and no read-modify-write; every flag and buffer has one writer; at least two buffers take turns,
// so that a call needs no barrier at its end.
// Used by shm and hierarchical.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective.hpp"
#include "comm/plan.hpp"
#include "comm/transport.hpp"

namespace lockstep::comm {

/// How ranks write data for others; only speed and memory depend on it. `cached`: by plain stores, to two places in
/// turn.
enum class Writing : std::uint8_t { measured, cached, streaming };

/// Collective: every rank publishes its whole input next to its flag and reads what it needs from all others.
/// One synchronisation a call; traffic grows with the square of the ranks.
[[nodiscard]] std::unique_ptr<Plan> make_flat_plan(Transport& node, const Call& call,
                                                   Writing writing = Writing::measured);

/// How a vector is divided into slices.
struct Slicing {
  /// The first `n_owners` ranks of the node each own a slice; all ranks do for reduce_scatter and all_gather.
  int n_owners = 1;
  /// The divisor of the finished sum.
  int divisor = 1;
  /// A slice is processed in pieces of at most this many bytes; the same on all nodes that work together.
  std::size_t piece_bytes = 256 * 1024;
  /// Set if the owner's sum is only this node's share: makes a plan that finishes `n_elements` of it in place, together
  /// with other nodes.
  std::function<std::unique_ptr<Plan>(std::size_t n_elements)> finish_across;
  Writing writing = Writing::measured;
};

/// Makes a plan that finishes `n_elements` of a sum in place, over `across`: ranks that own the same slice in their
/// groups.
using FinishAcross = std::function<std::unique_ptr<Plan>(Transport& across, std::size_t n_elements)>;

/// Collective: all_reduce in groups of ranks with equal labels: sliced in each group, and the owners of a slice in all
/// groups finish it. `slicing` has no owners (there are as many as ranks in the smallest group) and no finish.
[[nodiscard]] std::unique_ptr<Plan> make_grouped_plan(Transport& world, const Call& call, std::span<const int> groups,
                                                      Slicing slicing, FinishAcross finish);

/// Returns the ranks per group; labels are numbers from 0 without gaps.
[[nodiscard]] std::vector<int> group_sizes(std::span<const int> groups);

/// Collective: works chunk by chunk. Every rank copies in the slices of other owners, each owner sums its slice (its
/// own part directly from the input), and all copy out. A rank copies in one chunk while it waits for the previous one.
[[nodiscard]] std::unique_ptr<Plan> make_sliced_plan(Transport& node, const Call& call, const Slicing& slicing);

}  // namespace lockstep::comm
