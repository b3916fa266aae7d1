// Ring: every rank sends to its right neighbour only. P-1 steps add up the parts on their way round (reduce-scatter),
// P-1 more pass the finished parts on (all-gather). Bandwidth-optimal (Patarasuk & Yuan 2009). Parts are cut into
// segments, so that adding one segment overlaps the transfer of the next.
#include <algorithm>

#include "comm/algorithms/algorithms.hpp"

namespace lockstep::comm::ring {
namespace {

// Small enough that a received segment is still in the L2 cache when it is added.
constexpr std::size_t segment_bytes = 128 * 1024;

constexpr int recv_slot = 0;  // and 1: two receives in flight
constexpr int send_slot = 2;  // and 3

/// One rank's view of the ring.
struct View {
  explicit View(const Setting& s)
      : setting{s},
        n_segments{count_segments(s.call, s.call.longest_part(s.n_ranks), segment_bytes)},
        n_items{(s.n_ranks - 1) * n_segments} {}

  /// The part that is `distance` ranks to the left.
  [[nodiscard]] core::Slice part(std::size_t distance) const {
    const int p = setting.n_ranks;
    return setting.part(static_cast<int>((setting.rank + 2 * p - static_cast<int>(distance)) % p));
  }
  /// Item i of a phase is segment i % n_segments of the part `lead` + i / n_segments ranks to the left.
  [[nodiscard]] core::Slice item(std::size_t i, std::size_t lead) const {
    return core::partition(part(lead + i / n_segments), n_segments, i % n_segments);
  }
  /// The length of the longest segment of any part.
  [[nodiscard]] std::size_t longest_item() const {
    return core::partition(setting.call.longest_part(setting.n_ranks), n_segments, 0).count;
  }
  [[nodiscard]] int left() const { return (setting.rank + setting.n_ranks - 1) % setting.n_ranks; }
  [[nodiscard]] int right() const { return (setting.rank + 1) % setting.n_ranks; }

  const Setting& setting;
  std::size_t n_segments;
  std::size_t n_items;  ///< messages per phase and rank
};

int slot(int first, std::size_t i) { return first + static_cast<int>(i % 2); }

void wait_all(Schedule& schedule) {
  for (const int s : {recv_slot, recv_slot + 1, send_slot, send_slot + 1}) schedule.wait(s);
}

/// Adds up the parts; this rank's finished part goes to `result`. `partial(i)` is where item i waits to be sent.
template <class Partial>
void reduce_phase(Schedule& schedule, const View& ring, Region result, Partial partial) {
  const std::size_t longest = ring.longest_item();
  const Region landing[2] = {schedule.scratch(longest), schedule.scratch(longest)};
  const auto landing_of = [&](std::size_t i) {
    return Region{Operand::scratch, {landing[i % 2].slice.offset, ring.item(i, 2).count}};
  };
  if (ring.n_items > 0) schedule.recv(slot(recv_slot, 0), ring.left(), landing_of(0));
  for (std::size_t i = 0; i < ring.n_items; ++i) {
    if (i + 1 < ring.n_items) schedule.recv(slot(recv_slot, i + 1), ring.left(), landing_of(i + 1));
    schedule.wait(slot(send_slot, i));
    schedule.send(slot(send_slot, i), ring.right(),
                  i < ring.n_segments ? Region{Operand::input, ring.item(i, 1)} : partial(i - ring.n_segments));
    schedule.wait(slot(recv_slot, i));
    const bool is_last_step = i + ring.n_segments >= ring.n_items;
    const core::Slice own = ring.item(i, 2);
    const Region target =
        is_last_step ? Region{result.operand, {result.slice.offset + own.offset - ring.part(0).offset, own.count}}
                     : partial(i);
    schedule.combine(target, landing_of(i), Region{Operand::input, own});
  }
  wait_all(schedule);
}

/// Passes the finished parts round; this rank's own is already in the output.
void gather_phase(Schedule& schedule, const View& ring) {
  const auto arrival = [&](std::size_t i) { return Region{Operand::output, ring.item(i, 1)}; };
  if (ring.n_items > 0) schedule.recv(slot(recv_slot, 0), ring.left(), arrival(0));
  for (std::size_t i = 0; i < ring.n_items; ++i) {
    if (i + 1 < ring.n_items) schedule.recv(slot(recv_slot, i + 1), ring.left(), arrival(i + 1));
    schedule.wait(slot(send_slot, i));
    schedule.send(slot(send_slot, i), ring.right(), Region{Operand::output, ring.item(i, 0)});
    schedule.wait(slot(recv_slot, i));
  }
  wait_all(schedule);
}

}  // namespace

Schedule all_reduce(const Setting& setting) {
  if (setting.n_ranks == 1) return copy_alone(setting);
  Schedule schedule;
  const View ring{setting};
  const Region own{Operand::output, setting.part(setting.rank)};
  reduce_phase(schedule, ring, own, [&](std::size_t i) { return Region{Operand::output, ring.item(i, 2)}; });
  schedule.divide(own, setting.divisor());
  gather_phase(schedule, ring);
  return schedule;
}

Schedule reduce_scatter(const Setting& setting) {
  if (setting.n_ranks == 1) return copy_alone(setting);
  Schedule schedule;
  const Region own{Operand::output, {0, setting.part(setting.rank).count}};
  const View ring{setting};
  // Item i is sent n_segments items later, before item i + n_segments + 1 is written.
  const std::size_t longest = ring.longest_item();
  const std::size_t n_waiting = ring.n_segments + 2;
  const Region waiting = schedule.scratch(n_waiting * longest);
  reduce_phase(schedule, ring, own, [&](std::size_t i) {
    return Region{Operand::scratch, {waiting.slice.offset + (i % n_waiting) * longest, ring.item(i, 2).count}};
  });
  schedule.divide(own, setting.divisor());
  return schedule;
}

Schedule all_gather(const Setting& setting) {
  if (setting.n_ranks == 1) return copy_alone(setting);
  Schedule schedule;
  const core::Slice part = setting.part(setting.rank);
  schedule.copy({Operand::output, part}, {Operand::input, {0, part.count}});
  gather_phase(schedule, View{setting});
  return schedule;
}

Cost cost(const Call& call, std::span<const int> nodes) {
  const auto p = static_cast<int>(nodes.size());
  const std::size_t n_segments = count_segments(call, call.longest_part(p), segment_bytes);
  std::size_t segments_of_all_parts = 0;
  for (int r = 0; r < p; ++r) segments_of_all_parts += std::min(n_segments, call.part(r, p).count);
  const std::uint64_t phases = call.collective == Collective::all_reduce ? 2 : 1;
  const std::uint64_t rounds = phases * static_cast<std::uint64_t>(p - 1);
  return {.steps = rounds, .messages = rounds * segments_of_all_parts, .bytes = rounds * call.bytes().value};
}

}  // namespace lockstep::comm::ring
