// Which ranks share an arena of parameters and which of them own slices of it.
// Invariant: a pure function of the transport's nodes, so all ranks agree without a message.
// Used by the synchronizer.
#pragma once

#include <vector>

namespace lockstep::parallel {

struct Placement {
  std::vector<int> nodes;  ///< of each rank: the group that shares memory
  int n_nodes = 1;
  /// Ranks of each node that own slices: as many as the smallest node has, so every node has one owner per slice.
  int n_owners = 1;
};

/// `nodes`: as a Transport numbers them. In a deterministic run the ranks of a node must be a subtree of the tree over
/// all ranks. If they are not (nodes of different size, or ranks placed cyclically), each rank counts as a node.
[[nodiscard]] Placement place(const std::vector<int>& nodes, bool is_deterministic);

}  // namespace lockstep::parallel
