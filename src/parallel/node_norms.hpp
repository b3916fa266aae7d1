// Squared norms over several owners: of the whole gradient for clipping, of whole tensors for LARS and LAMB.
// Invariant: blocks are added in the order of the arena, so the result depends neither on ranks nor on nodes.
// Used by the synchronizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/plan.hpp"
#include "comm/transport.hpp"
#include "parallel/node_flags.hpp"
#include "parallel/sharding.hpp"
#include "parallel/shared_array.hpp"
#include "parallel/slots.hpp"

namespace lockstep::parallel {

/// Values of blocks that nodes know apart, because they divide the update. One message has those of all buckets.
class BlockGather {
 public:
  /// Collective over `between`. `runs`: the values of each part of the division, in order.
  BlockGather(comm::Transport& between, std::vector<std::vector<core::Slice>> runs, bool is_order_fixed);

  /// Collective: completes `values`, in which those of this rank's part are there.
  void run(std::span<double> values);

 private:
  std::vector<std::vector<core::Slice>> runs_;
  std::vector<std::size_t> cuts_{0};  ///< the begins of parts in a message, and the end
  std::size_t mine_;
  std::vector<double> message_;
  std::unique_ptr<comm::Plan> plan_;
};

class NodeNorms {
 public:
  /// Collective over the ranks of one node, and over `between`, the owners of the same shares on all nodes.
  /// `blocks` are those of the whole arena, in order.
  NodeNorms(comm::Transport& node, comm::Transport& between, NodeFlags& flags, std::size_t n_slots,
            std::vector<Piece> blocks, std::span<const Share> shares, bool is_order_fixed);

  /// The index of the first block of a slice.
  [[nodiscard]] std::size_t first_block(const core::Slice& slice) const noexcept;

  /// Stores an owner's squared norms, one for each block from `first_block` on.
  void put_gradient(std::size_t first_block, std::span<const double> norms) noexcept;
  /// Collective: returns the sum of all stored norms.
  [[nodiscard]] double sum_gradient();

  /// Likewise for two norms per block, alternating: parameters and updates.
  void put_tensors(std::size_t first_block, std::span<const double> norms) noexcept;
  /// Collective: sums the norms of each slot's blocks.
  void sum_tensors();
  /// Replaces each block's norms by those of its whole slot.
  void get_tensors(std::size_t first_block, std::span<double> norms) const noexcept;

 private:
  /// The norms of all blocks, `width` for each.
  struct Norms {
    SharedArray<double> array;
    std::unique_ptr<BlockGather> gather;  ///< null if each node knows them all
  };

  [[nodiscard]] Norms make_norms(comm::Transport& node, comm::Transport& between, std::span<const Share> shares,
                                 bool is_order_fixed, std::size_t width) const;
  void exchange(Norms& norms);

  NodeFlags& flags_;
  std::vector<Piece> blocks_;
  Norms gradient_;
  Norms tensors_;
  std::vector<double> of_slots_;
  std::uint64_t n_exchanges_ = 0;
};

}  // namespace lockstep::parallel
