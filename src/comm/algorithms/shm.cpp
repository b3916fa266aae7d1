// Shared memory: the ranks of one node work in memory that all of them see, with no message at all.
#include <algorithm>

#include "comm/algorithms/algorithms.hpp"
#include "comm/algorithms/shm_plans.hpp"

namespace lockstep::comm::shm {
namespace {

// Up to here all ranks together read so little that one synchronisation is worth more than less traffic.
constexpr std::size_t largest_flat_traffic = 16 * 1024;

constexpr std::size_t largest_piece = 256 * 1024;
constexpr std::size_t smallest_piece = 4 * 1024;

}  // namespace

std::unique_ptr<Plan> make(Transport& transport, const Call& call) {
  const auto n_ranks = static_cast<std::size_t>(transport.n_ranks());
  if (n_ranks * call.n_elements * call.element_size() <= largest_flat_traffic) return make_flat_plan(transport, call);
  // The shared memory of all ranks together should stay in the last-level cache.
  const std::size_t piece = std::clamp(last_level_cache_bytes() / (4 * n_ranks * n_ranks), smallest_piece, largest_piece);
  const Setting setting{transport.rank(), transport.n_ranks(), call};
  return make_sliced_plan(
      transport, call,
      {.n_owners = transport.n_ranks(), .divisor = setting.divisor(), .piece_bytes = piece, .finish_between_nodes = {}});
}

Cost cost(const Call&, std::span<const int>) { return {}; }

}  // namespace lockstep::comm::shm
