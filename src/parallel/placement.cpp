#include "parallel/placement.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace lockstep::parallel {
namespace {

/// Whether node k holds the k-th run of ranks, with runs of equal length.
bool is_in_equal_blocks(const std::vector<int>& nodes, std::size_t n_nodes) {
  if (nodes.size() % n_nodes != 0) return false;
  const std::size_t block = nodes.size() / n_nodes;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    if (nodes[rank] != static_cast<int>(rank / block)) return false;
  return true;
}

}  // namespace

Placement place(const std::vector<int>& nodes, bool is_deterministic) {
  Placement placement{.nodes = nodes, .n_nodes = 1 + *std::max_element(nodes.begin(), nodes.end()), .n_owners = 1};
  if (is_deterministic && !is_in_equal_blocks(nodes, static_cast<std::size_t>(placement.n_nodes))) {
    std::iota(placement.nodes.begin(), placement.nodes.end(), 0);
    placement.n_nodes = static_cast<int>(nodes.size());
  }
  std::vector<int> sizes(static_cast<std::size_t>(placement.n_nodes));
  for (const int node : placement.nodes) ++sizes[static_cast<std::size_t>(node)];
  placement.n_owners = *std::min_element(sizes.begin(), sizes.end());
  return placement;
}

}  // namespace lockstep::parallel
