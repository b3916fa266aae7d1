// Rabenseifner: recursive halving (each round exchanges and adds half of the rest), then recursive doubling returns the
// finished parts. As little traffic as the ring, in logarithmically many rounds (Rabenseifner 2004).
#include "comm/algorithms/algorithms.hpp"
#include "comm/algorithms/fold.hpp"

namespace lockstep::comm::rabenseifner {
namespace {

/// Parts first ... last-1 of the vector, which is cut into as many parts as there are active ranks.
struct Window {
  int first;
  int last;

  [[nodiscard]] core::Slice slice(std::size_t n_elements, int n_parts) const {
    const auto part = [&](int index) {
      return core::partition(n_elements, static_cast<std::size_t>(n_parts), static_cast<std::size_t>(index));
    };
    const std::size_t begin = part(first).offset;
    return {begin, part(last - 1).end() - begin};
  }
};

/// The two halves of the window of size 2*distance that `active_rank` works on: the one it keeps, the one its peer
/// keeps.
struct Halves {
  Halves(int active_rank, int distance) {
    const int middle = (active_rank / (2 * distance)) * 2 * distance + distance;
    const Window lower{middle - distance, middle};
    const Window upper{middle, middle + distance};
    const bool keeps_lower = active_rank < middle;
    kept = keeps_lower ? lower : upper;
    given = keeps_lower ? upper : lower;
  }
  Window kept{};
  Window given{};
};

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
  const std::size_t n = setting.call.n_elements;
  const auto at = [&](Operand operand, const Window& window) {
    return Region{operand, window.slice(n, fold.n_active)};
  };
  const Region landing =
      schedule.scratch(fold.has_partner ? n : Window{0, fold.n_active / 2}.slice(n, fold.n_active).count);
  Operand running = Operand::input;
  if (fold.has_partner) {
    take_in(schedule, setting, landing, result);
    running = Operand::output;
  }
  for (int distance = fold.n_active / 2; distance >= 1; distance /= 2) {
    const int peer = fold.active_rank ^ distance;
    const Halves halves{fold.active_rank, distance};
    const Region received{Operand::scratch, {landing.slice.offset, at(running, halves.kept).slice.count}};
    schedule.recv(recv_slot, fold.rank_of(peer), received);
    schedule.send(send_slot, fold.rank_of(peer), at(running, halves.given));
    schedule.wait(recv_slot);
    // Lower ranks first, so a part has the same bits wherever it is added up.
    if (peer < fold.active_rank)
      schedule.combine(at(Operand::output, halves.kept), received, at(running, halves.kept));
    else
      schedule.combine(at(Operand::output, halves.kept), at(running, halves.kept), received);
    schedule.wait(send_slot);
    running = Operand::output;
  }
  schedule.divide(at(Operand::output, {fold.active_rank, fold.active_rank + 1}), setting.divisor());
  for (int distance = 1; distance < fold.n_active; distance *= 2) {
    const int peer = fold.active_rank ^ distance;
    const Halves halves{fold.active_rank, distance};
    schedule.recv(recv_slot, fold.rank_of(peer), at(Operand::output, halves.given));
    schedule.send(send_slot, fold.rank_of(peer), at(Operand::output, halves.kept));
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
  // Every rank keeps a part, so its messages exist only if parts are not empty: counts window by window.
  std::uint64_t messages = 2 * extra;
  for (int distance = 1; distance < fold.n_active; distance *= 2) {
    for (int rank = 0; rank < fold.n_active; ++rank) {
      const Halves halves{rank, distance};
      messages += halves.kept.slice(call.n_elements, fold.n_active).count > 0;
      messages += halves.given.slice(call.n_elements, fold.n_active).count > 0;
    }
  }
  return {.steps = 2 * fold.n_rounds() + (extra > 0 ? 2 : 0),
          .messages = messages,
          .bytes = 2 * (active - 1 + extra) * size};
}

}  // namespace lockstep::comm::rabenseifner
