// Shared memory: the ranks of one node work in memory that all of them see, without messages.
#include <algorithm>
#include <vector>

#include "comm/algorithms/algorithms.hpp"
#include "comm/algorithms/shm_plans.hpp"
#include "comm/flag.hpp"
#include "runtime/memory.hpp"

namespace lockstep::comm::shm {
namespace {

// Up to this size, reading from the others costs less than a second synchronisation. Measured with 2 ranks only (near
// cores, 32 KiB: 4.4 us flat, 5.1 us sliced; 64 KiB: 7.7 us flat, 5.4 us sliced). For more ranks we assume that the
// total of bytes read matters.
constexpr std::size_t largest_flat_reading = 32 * 1024;

// 256 KiB to 512 KiB are best from 256 KiB to 64 MiB with 2 ranks; 1 MiB is 15 % slower once vectors leave the caches.
constexpr std::size_t largest_piece = 512 * 1024;
constexpr std::size_t smallest_piece = 4 * 1024;

// More ranks than this work in groups, so that few read from one another and few lines cross a socket.
constexpr int largest_group = 16;

// The shared memory of all ranks of a node for one plan, or for one level of groups. Each rank has room for two pieces
// of every owner, or more pieces if they fit half the last-level cache. So pieces are small if there are many ranks. A
// piece has at least two lines: more than 500 ranks that reduce-scatter need more memory than this, 256 B for every
// pair.
constexpr std::size_t largest_shared = 64 * 1024 * 1024;

std::size_t choose_piece(std::size_t n_together, std::size_t n_owners, std::size_t n_ranks) {
  const std::size_t cached = runtime::last_level_cache().value / (4 * n_together * n_together);
  const std::size_t shared = largest_shared / (2 * (n_owners + 1) * n_ranks) / flag_stride * flag_stride;
  return std::min(std::clamp(cached, smallest_piece, largest_piece), std::max(shared, flag_stride));
}

/// Divides each group of more than largest_group ranks into parts of about the same size, in rank order.
std::vector<int> split_large(const std::vector<int>& groups) {
  const std::vector<int> sizes = group_sizes(groups);
  const auto n_ranks = static_cast<int>(groups.size());
  std::vector<int> n_seen(sizes.size());
  std::vector<int> labels;
  for (const int group : groups) {
    const auto g = static_cast<std::size_t>(group);
    const int n_parts = (sizes[g] + largest_group - 1) / largest_group;
    labels.push_back(group * n_ranks + n_seen[g]++ * n_parts / sizes[g]);
  }
  return renumber(labels);
}

/// Groups the ranks of one last-level cache, else of one socket, else all, with at least two ranks per group; empty if
/// that is one group.
std::vector<int> find_groups(const Transport& transport) {
  for (int Seat::*const level : {&Seat::cache, &Seat::socket}) {
    std::vector<int> labels;
    for (const Seat& seat : transport.seats()) labels.push_back(seat.*level);
    const std::vector<int> groups = renumber(labels);
    const std::vector<int> sizes = group_sizes(groups);
    if (sizes.size() > 1 && *std::min_element(sizes.begin(), sizes.end()) > 1) return split_large(groups);
  }
  if (transport.n_ranks() <= largest_group) return {};
  return split_large(std::vector<int>(static_cast<std::size_t>(transport.n_ranks())));
}

/// All ranks exchange with all.
std::unique_ptr<Plan> make_together(Transport& transport, const Call& call, int divisor) {
  const auto n_ranks = static_cast<std::size_t>(transport.n_ranks());
  if ((n_ranks - 1) * call.bytes().value <= largest_flat_reading) return make_flat_plan(transport, call);
  // The shared memory of all ranks together should stay in the last-level cache.
  const std::size_t n_owners = call.collective == Collective::all_gather ? 0 : n_ranks;  // with pieces copied in
  const std::size_t piece = choose_piece(n_ranks, n_owners, n_ranks);
  return make_sliced_plan(
      transport, call,
      {.n_owners = transport.n_ranks(), .divisor = divisor, .piece_bytes = piece, .finish_across = {}});
}

/// Groups ranks by last-level cache, and these groups by socket.
std::unique_ptr<Plan> make_in_groups(Transport& transport, const Call& call, std::span<const int> groups, int divisor) {
  const std::vector<int> sizes = group_sizes(groups);
  const auto n_group = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  const std::size_t piece = choose_piece(n_group, n_group, static_cast<std::size_t>(transport.n_ranks()));
  const auto finish = [call](Transport& across, std::size_t n_elements) {
    const Call sum{Collective::all_reduce, call.dtype, call.op == ReduceOp::avg ? ReduceOp::sum : call.op, n_elements};
    const std::vector<int> wider = find_groups(across);
    return wider.empty() ? make_together(across, sum, 1) : make_in_groups(across, sum, wider, 1);
  };
  return make_grouped_plan(transport, call, groups,
                           {.divisor = divisor, .piece_bytes = piece, .finish_across = {}, .writing = Writing::cached},
                           finish);
}

}  // namespace

std::unique_ptr<Plan> make(Transport& transport, const Call& call) {
  const Setting setting{transport.rank(), transport.n_ranks(), call};
  if (setting.n_ranks == 1) return make_scheduled_plan(transport, call, copy_alone(setting));
  if (setting.n_ranks > largest_group && call.collective == Collective::all_reduce)
    if (const std::vector<int> groups = find_groups(transport); !groups.empty())
      return make_in_groups(transport, call, groups, setting.divisor());
  return make_together(transport, call, setting.divisor());
}

Cost cost(const Call&, std::span<const int>) { return {}; }

}  // namespace lockstep::comm::shm
