// Ranks beyond the largest power of two step aside: each gives its vector to a neighbour first and gets the result
// last.
// Invariant: neighbours are adjacent, so partial results stay sums over consecutive ranks.
// Used by recursive_doubling and rabenseifner.
#pragma once

#include <bit>
#include <cstdint>

#include "comm/schedule.hpp"

namespace lockstep::comm {

/// The even ranks of the first 2*extra step aside; the others are numbered 0 ... n_active-1 (a power of two).
struct PowerOfTwoFold {
  explicit PowerOfTwoFold(const Setting& s) : PowerOfTwoFold{s.n_ranks, s.rank} {}
  PowerOfTwoFold(int n_ranks, int rank)
      : n_active{static_cast<int>(std::bit_floor(static_cast<unsigned>(n_ranks)))},
        extra{n_ranks - n_active},
        is_aside{rank < 2 * extra && rank % 2 == 0},
        has_partner{rank < 2 * extra && rank % 2 == 1},
        active_rank{rank < 2 * extra ? rank / 2 : rank - extra} {}

  [[nodiscard]] int rank_of(int active) const noexcept { return active < extra ? 2 * active + 1 : active + extra; }
  [[nodiscard]] std::uint64_t n_rounds() const noexcept {
    return static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(n_active)) - 1);
  }

  int n_active;
  int extra;
  bool is_aside;
  bool has_partner;
  int active_rank;
};

inline constexpr int recv_slot = 0;
inline constexpr int send_slot = 1;

/// The whole schedule of a rank that steps aside: it gives its vector to the next rank and waits for the result.
inline void step_aside(Schedule& schedule, const Setting& setting) {
  schedule.send(send_slot, setting.rank + 1, Region{Operand::input, setting.whole()});
  schedule.wait(send_slot);  // sent before the receive, which in place overwrites the same memory.
  schedule.recv(recv_slot, setting.rank + 1, Region{Operand::output, setting.whole()});
  schedule.wait(recv_slot);
}

/// Combines the previous rank's vector; afterwards the running result is in the output.
inline void take_in(Schedule& schedule, const Setting& setting, Region landing) {
  schedule.recv(recv_slot, setting.rank - 1, landing);
  schedule.wait(recv_slot);
  schedule.combine(Region{Operand::output, setting.whole()}, landing, Region{Operand::input, setting.whole()});
}

/// Returns the result to the rank that stepped aside.
inline void give_back(Schedule& schedule, const Setting& setting) {
  schedule.send(send_slot, setting.rank - 1, Region{Operand::output, setting.whole()});
  schedule.wait(send_slot);
}

}  // namespace lockstep::comm
