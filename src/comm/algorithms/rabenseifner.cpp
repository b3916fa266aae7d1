// Rabenseifner: recursive halving (each round exchanges and adds half of the rest), then recursive doubling returns the
// finished parts. As little traffic as the ring, in logarithmically many rounds (Rabenseifner 2004).
#include "comm/algorithms/algorithms.hpp"
#include "comm/algorithms/pairs.hpp"

namespace lockstep::comm::rabenseifner {
namespace {

/// The active ranks cut the vector among themselves.
Places places_of(const Call& call, const PowerOfTwoFold& fold) {
  return Places{{.rank = fold.active_rank, .n_ranks = fold.n_active, .call = call}};
}

}  // namespace

Schedule all_reduce(const Setting& setting) {
  if (setting.n_ranks == 1) return copy_alone(setting);
  Schedule schedule;
  const PowerOfTwoFold fold{setting.n_ranks, setting.rank};
  const Region result{Operand::output, setting.whole()};
  if (fold.is_aside) {
    step_aside(schedule, setting, {Operand::input, setting.whole()}, result);
    return schedule;
  }
  const Places places = places_of(setting.call, fold);
  const Region landing =
      schedule.scratch(fold.has_partner ? setting.call.n_elements : places.round(fold.n_active / 2).kept.count);
  Operand running = Operand::input;
  if (fold.has_partner) {
    take_in(schedule, setting, landing, result);
    running = Operand::output;
  }
  for (int n = fold.n_active / 2; n >= 1; n /= 2) {
    const Round round = places.round(n);
    const int peer = fold.rank_of(round.peer);
    const Region received{Operand::scratch, {landing.slice.offset, round.kept.count}};
    const Region sum{Operand::output, round.kept}, mine{running, round.kept};
    schedule.recv(recv_slot, peer, received);
    schedule.send(send_slot, peer, {running, round.given});
    schedule.wait(recv_slot);
    combine_with(schedule, setting, peer, sum, mine, received);
    schedule.wait(send_slot);
    running = Operand::output;
  }
  schedule.divide({Operand::output, places.window(places.mine, 1)}, setting.divisor());
  for (int n = 1; n < fold.n_active; n *= 2) {
    const Round round = places.round(n);
    const int peer = fold.rank_of(round.peer);
    schedule.recv(recv_slot, peer, {Operand::output, round.given});
    schedule.send(send_slot, peer, {Operand::output, round.kept});
    schedule.wait(recv_slot);
    schedule.wait(send_slot);
  }
  if (fold.has_partner) give_back(schedule, setting, result);
  return schedule;
}

Cost cost(const Call& call, std::span<const int> nodes) {
  const PowerOfTwoFold fold{static_cast<int>(nodes.size()), 0};
  if (call.n_elements == 0) return {};
  const std::uint64_t size = call.bytes().value;
  const auto active = static_cast<std::uint64_t>(fold.n_active);
  const auto extra = static_cast<std::uint64_t>(fold.extra);
  // An empty part is no message.
  std::uint64_t messages = 2 * extra;
  for (int rank = 0; rank < fold.n_active; ++rank) {
    const Places places = places_of(call, {fold.n_active, rank});
    for (int n = 1; n < fold.n_active; n *= 2) {
      const Round round = places.round(n);
      messages += (round.kept.empty() ? 0 : 1) + (round.given.empty() ? 0 : 1);
    }
  }
  return {.steps = 2 * fold.n_rounds() + (extra > 0 ? 2 : 0),
          .messages = messages,
          .bytes = 2 * (active - 1 + extra) * size};
}

}  // namespace lockstep::comm::rabenseifner
