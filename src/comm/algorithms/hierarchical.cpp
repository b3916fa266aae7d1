// Hierarchical: the ranks of a node reduce-scatter through shared memory. Then the owners of the same slice on all
// nodes all-reduce it, all slices at the same time, and the node gathers through shared memory. So every rank (or NIC)
// of a node carries its share of the traffic between nodes (Bayatpour et al., SC'17).
#include <algorithm>
#include <vector>

#include "comm/algorithms/algorithms.hpp"
#include "comm/algorithms/shm_plans.hpp"

namespace lockstep::comm::hierarchical {
namespace {

constexpr std::size_t largest_piece = 256 * 1024;
constexpr std::size_t smallest_piece = 4 * 1024;

/// Keeps the shared memory of the fullest node within a usual last-level cache of 32 MiB, unless there are so many
/// ranks that messages would become tiny. A function of the placement alone, because all nodes must cut alike.
std::size_t piece_bytes(std::span<const int> nodes) {
  const std::vector<int> sizes = group_sizes(nodes);
  const auto n_ranks = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  return std::clamp((std::size_t{32} << 20) / (4 * n_ranks * n_ranks), smallest_piece, largest_piece);
}

/// How the owners of a slice on different nodes process a piece of it.
Call piece_call(const Call& call, std::size_t n_elements) {
  // Ranks divide an average once, after the sum over all nodes.
  return {Collective::all_reduce, call.dtype, call.op == ReduceOp::avg ? ReduceOp::sum : call.op, n_elements};
}

}  // namespace

std::unique_ptr<Plan> make(Transport& transport, const Call& call) {
  const Setting setting{transport.rank(), transport.n_ranks(), call};
  const auto finish = [call](Transport& across, std::size_t n_elements) {
    return make_plan(across, piece_call(call, n_elements));
  };
  return make_grouped_plan(
      transport, call, transport.nodes(),
      {.divisor = setting.divisor(), .piece_bytes = piece_bytes(transport.nodes()), .finish_across = {}}, finish);
}

Cost cost(const Call& call, std::span<const int> nodes) {
  const std::vector<int> sizes = group_sizes(nodes);
  const int n_owners = static_cast<int>(*std::min_element(sizes.begin(), sizes.end()));
  const std::vector<int> across = one_rank_each(1 + *std::max_element(nodes.begin(), nodes.end()));
  const std::size_t n_chunks = count_segments(call, call.part(0, n_owners).count, piece_bytes(nodes));
  Cost total;
  for (int owner = 0; owner < n_owners; ++owner) {
    for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) {
      const Call piece = piece_call(call, core::partition(call.part(owner, n_owners), n_chunks, chunk).count);
      const Cost between = choose(piece, across).algorithm->all_reduce.cost(piece, across);
      total.steps = std::max(total.steps, between.steps);
      total.messages += between.messages;
      total.bytes += between.bytes;
    }
  }
  return total;
}

}  // namespace lockstep::comm::hierarchical
