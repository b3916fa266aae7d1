// Recursive halving: in each round, two ranks that still have the same part of the vector exchange halves of it, and
// each adds up the half that it keeps (reduce-scatter). The same rounds backwards, without addition, gather the parts
// (Thakur, Rabenseifner & Gropp 2005).
//
// If the order of sums is fixed, the first pairs are neighbours, so that each element is added up in the tree of
// recursive doubling: ((0+1)+(2+3))+... The part that a rank then ends with has the bits of its number reversed
// (Call::part). Otherwise the first pairs are the farthest, and parts lie in rank order.
//
// Unless the number of ranks is a power of two, ranks step aside as in recursive doubling, whose tree this keeps. Such
// a rank gives its whole vector to the next rank, and gets its finished part from it; in an all-gather it gives its
// part and gets the whole.
#include "comm/algorithms/algorithms.hpp"
#include "comm/algorithms/pairs.hpp"

namespace lockstep::comm::recursive_halving {
Schedule reduce_scatter(const Setting& setting) {
  if (setting.n_ranks == 1) return copy_alone(setting);
  Schedule schedule;
  const Places places{setting};
  const Region input{Operand::input, setting.whole()};
  const Region result{Operand::output, {0, setting.part(setting.rank).count}};
  if (places.fold.is_aside) {
    step_aside(schedule, setting, input, result);
    return schedule;
  }
  Region running = input;
  std::size_t begin = 0;  // of `running`, in the vector
  const auto at = [&](const core::Slice& slice) {
    return Region{running.operand, {running.slice.offset + slice.offset - begin, slice.count}};
  };
  if (places.fold.has_partner) {
    running = schedule.scratch(setting.call.n_elements);
    take_in(schedule, setting, running, running);
  }
  for (int n = places.fold.n_active / 2; n >= 1; n /= 2) {
    const Round round = places.round(n);
    const Region landing = schedule.scratch(round.kept.count);
    schedule.recv(recv_slot, round.peer, landing);
    schedule.send(send_slot, round.peer, at(round.given));
    schedule.wait(recv_slot);
    const Region sum = n > 1 || places.fold.has_partner ? landing : result;
    combine_with(schedule, setting, round.peer, sum, at(round.kept), landing);
    schedule.wait(send_slot);
    running = sum;
    begin = round.kept.offset;
  }
  schedule.divide(running, setting.divisor());
  if (places.fold.has_partner) {
    schedule.copy(result, at(setting.part(setting.rank)));
    give_back(schedule, setting, at(setting.part(setting.rank - 1)));
  }
  return schedule;
}

Schedule all_gather(const Setting& setting) {
  if (setting.n_ranks == 1) return copy_alone(setting);
  Schedule schedule;
  const Places places{setting};
  const core::Slice part = setting.part(setting.rank);
  const Region input{Operand::input, {0, part.count}};
  const auto at = [](const core::Slice& slice) { return Region{Operand::output, slice}; };
  if (places.fold.is_aside) {
    step_aside(schedule, setting, input, at(setting.whole()));
    return schedule;
  }
  schedule.copy(at(part), input);
  if (places.fold.has_partner) {
    schedule.recv(recv_slot, setting.rank - 1, at(setting.part(setting.rank - 1)));
    schedule.wait(recv_slot);
  }
  for (int n = 1; n < places.fold.n_active; n *= 2) {
    const Round round = places.round(n);
    schedule.recv(recv_slot, round.peer, at(round.given));
    schedule.send(send_slot, round.peer, at(round.kept));
    schedule.wait(recv_slot);
    schedule.wait(send_slot);
  }
  if (places.fold.has_partner) give_back(schedule, setting, at(setting.whole()));
  return schedule;
}

// The same for both, because what one sends is what the other receives.
Cost cost(const Call& call, std::span<const int> nodes) {
  const auto n_ranks = static_cast<int>(nodes.size());
  Cost total;
  if (call.n_elements == 0) return total;
  const auto send = [&](std::size_t n_elements) {
    total.messages += n_elements > 0 ? 1 : 0;
    total.bytes += n_elements * call.element_size();
  };
  for (int rank = 0; rank < n_ranks; ++rank) {
    const Places places{{.rank = rank, .n_ranks = n_ranks, .call = call}};
    if (places.fold.is_aside) {
      send(call.n_elements);
      send(call.part(rank, n_ranks).count);
    } else {
      for (int n = 1; n < places.fold.n_active; n *= 2) send(places.round(n).given.count);
    }
    total.steps = places.fold.n_rounds() + (places.fold.extra > 0 ? 2 : 0);
  }
  return total;
}

}  // namespace lockstep::comm::recursive_halving
