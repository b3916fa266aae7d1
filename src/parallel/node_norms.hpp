// Squared norms over several owners: of the whole gradient for clipping, of whole tensors for LARS and LAMB.
// Invariant: blocks are added in the order of the arena, so the result depends neither on ranks nor on nodes.
// Used by the synchronizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/transport.hpp"
#include "parallel/node_flags.hpp"
#include "parallel/shared_array.hpp"
#include "parallel/slots.hpp"

namespace lockstep::parallel {

class NodeNorms {
 public:
  /// Collective over the ranks of one node. `blocks` are those of the whole arena, in order.
  NodeNorms(comm::Transport& node, NodeFlags& flags, std::size_t n_slots, std::vector<Piece> blocks);

  /// The index of the first block of a slice.
  [[nodiscard]] std::size_t first_block(const core::Slice& slice) const noexcept;

  /// Stores an owner's squared norms, one for each block from `first_block` on.
  void put_gradient(std::size_t first_block, std::span<const double> norms) noexcept;
  /// Collective over the node: returns the sum of all stored norms.
  [[nodiscard]] double sum_gradient();

  /// Likewise for two norms per block, alternating: parameters and updates.
  void put_tensors(std::size_t first_block, std::span<const double> norms) noexcept;
  /// Collective over the node: sums the norms of each slot's blocks.
  void sum_tensors();
  /// Replaces each block's norms by those of its whole slot.
  void get_tensors(std::size_t first_block, std::span<double> norms) const noexcept;

 private:
  void exchange();

  NodeFlags& flags_;
  std::vector<Piece> blocks_;
  SharedArray<double> gradient_;
  SharedArray<double> tensors_;
  std::vector<double> of_slots_;
  std::uint64_t n_exchanges_ = 0;
};

}  // namespace lockstep::parallel
