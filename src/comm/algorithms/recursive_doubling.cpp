// Recursive doubling: in round k ranks 2^k apart exchange whole vectors and add. It has the fewest rounds, so it is for
// short vectors (Thakur, Rabenseifner & Gropp 2005, section 4.4).
#include "comm/algorithms/algorithms.hpp"
#include "comm/algorithms/pairs.hpp"

namespace lockstep::comm::recursive_doubling {

Schedule all_reduce(const Setting& setting) {
  if (setting.n_ranks == 1) return copy_alone(setting);
  Schedule schedule;
  const Region result{Operand::output, setting.whole()};
  Region running{Operand::input, setting.whole()};
  const PowerOfTwoFold fold{setting.n_ranks, setting.rank};
  if (fold.is_aside) {
    step_aside(schedule, setting, running, result);
    return schedule;
  }
  const Region landing = schedule.scratch(setting.call.n_elements);
  if (fold.has_partner) {
    take_in(schedule, setting, landing, result);
    running = result;
  }
  for (int distance = 1; distance < fold.n_active; distance *= 2) {
    const int peer = fold.rank_of(fold.active_rank ^ distance);
    schedule.recv(recv_slot, peer, landing);
    schedule.send(send_slot, peer, running);
    schedule.wait(recv_slot);
    schedule.wait(send_slot);
    combine_with(schedule, setting, peer, result, running, landing);
    running = result;
  }
  schedule.divide(result, setting.divisor());
  if (fold.has_partner) give_back(schedule, setting, result);
  return schedule;
}

Cost cost(const Call& call, std::span<const int> nodes) {
  const PowerOfTwoFold fold{static_cast<int>(nodes.size()), 0};
  if (call.n_elements == 0) return {};
  const auto extra = static_cast<std::uint64_t>(fold.extra);
  const std::uint64_t messages = static_cast<std::uint64_t>(fold.n_active) * fold.n_rounds() + 2 * extra;
  return {.steps = fold.n_rounds() + (extra > 0 ? 2 : 0), .messages = messages, .bytes = messages * call.bytes().value};
}

}  // namespace lockstep::comm::recursive_doubling
