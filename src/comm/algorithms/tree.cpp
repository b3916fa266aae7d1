// Tree: a binomial tree adds up toward rank 0, and a second pass sends the result down. Every rank sends little and few
// wait long. Segments let all levels of the tree work at the same time.
#include <bit>
#include <vector>

#include "comm/algorithms/algorithms.hpp"

namespace lockstep::comm::tree {
namespace {

constexpr std::size_t segment_bytes = 128 * 1024;

/// Children and parent of a rank in the binomial tree rooted at rank 0.
struct Family {
  Family(int rank, int n_ranks) {
    int distance = 1;
    for (; distance < n_ranks && (rank & distance) == 0; distance *= 2)
      if (rank + distance < n_ranks) children.push_back(rank + distance);
    if (rank > 0) parent = rank - distance;
  }
  std::vector<int> children;  ///< the nearest, which has the smallest subtree, first
  int parent = -1;
};

void add_up(Schedule& schedule, const Family& family, const Setting& setting, std::size_t n_segments) {
  const Region landing =
      schedule.scratch(family.children.empty() ? 0 : core::partition(setting.whole(), n_segments, 0).count);
  constexpr int recv_slot = 0;
  constexpr int send_slot = 1;
  for (std::size_t k = 0; k < n_segments; ++k) {
    const core::Slice part = core::partition(setting.whole(), n_segments, k);
    Region running{Operand::input, part};
    for (const int child : family.children) {
      const Region received{Operand::scratch, {landing.slice.offset, part.count}};
      schedule.recv(recv_slot, child, received);
      schedule.wait(recv_slot);
      schedule.combine(Region{Operand::output, part}, running, received);
      running = Region{Operand::output, part};
    }
    schedule.wait(send_slot);
    if (family.parent >= 0) schedule.send(send_slot, family.parent, running);
  }
  schedule.wait(send_slot);
}

void hand_down(Schedule& schedule, const Family& family, const Setting& setting, std::size_t n_segments) {
  constexpr int recv_slot = 0;
  const auto send_slot = [](std::size_t child) { return 1 + static_cast<int>(child); };
  for (std::size_t k = 0; k < n_segments; ++k) {
    const Region part{Operand::output, core::partition(setting.whole(), n_segments, k)};
    if (family.parent >= 0) {
      schedule.recv(recv_slot, family.parent, part);
      schedule.wait(recv_slot);
    }
    for (std::size_t i = family.children.size(); i-- > 0;) {  // the largest subtree has the longest way
      schedule.wait(send_slot(i));
      schedule.send(send_slot(i), family.children[i], part);
    }
  }
  for (std::size_t i = 0; i < family.children.size(); ++i) schedule.wait(send_slot(i));
}

}  // namespace

Schedule all_reduce(const Setting& setting) {
  if (setting.n_ranks == 1) return copy_alone(setting);
  Schedule schedule;
  const Family family{setting.rank, setting.n_ranks};
  const std::size_t n_segments = count_segments(setting.call, setting.call.n_elements, segment_bytes);
  add_up(schedule, family, setting, n_segments);
  if (setting.rank == 0) schedule.divide(Region{Operand::output, setting.whole()}, setting.divisor());
  hand_down(schedule, family, setting, n_segments);
  return schedule;
}

Cost cost(const Call& call, std::span<const int> nodes) {
  if (call.n_elements == 0) return {};
  const std::uint64_t edges = nodes.size() - 1;
  const std::uint64_t n_segments = count_segments(call, call.n_elements, segment_bytes);
  const std::uint64_t depth = static_cast<std::uint64_t>(std::bit_width(edges));
  return {.steps = 2 * depth, .messages = 2 * edges * n_segments, .bytes = 2 * edges * call.bytes().value};
}

}  // namespace lockstep::comm::tree
