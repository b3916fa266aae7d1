// What algorithms share whose ranks work in pairs: how ranks beyond the largest power of two take part, and how the
// others halve the vector round by round.
// Invariant: as PowerOfTwoFold.
// Used by recursive_doubling, recursive_halving and rabenseifner.
#pragma once

#include "comm/power_of_two.hpp"
#include "comm/schedule.hpp"

namespace lockstep::comm {

inline constexpr int recv_slot = 0;
inline constexpr int send_slot = 1;

/// The whole schedule of a rank that steps aside: it gives `data` to the next rank and waits for `result`.
inline void step_aside(Schedule& schedule, const Setting& setting, Region data, Region result) {
  schedule.send(send_slot, setting.rank + 1, data);
  schedule.wait(send_slot);  // sent before the receive, which in place overwrites the same memory.
  schedule.recv(recv_slot, setting.rank + 1, result);
  schedule.wait(recv_slot);
}

/// Receives the previous rank's vector into `landing` and adds this rank's own to it in `sum`, which may be `landing`.
inline void take_in(Schedule& schedule, const Setting& setting, Region landing, Region sum) {
  schedule.recv(recv_slot, setting.rank - 1, landing);
  schedule.wait(recv_slot);
  schedule.combine(sum, landing, Region{Operand::input, setting.whole()});
}

/// Returns its `result` to the rank that stepped aside.
inline void give_back(Schedule& schedule, const Setting& setting, Region result) {
  schedule.send(send_slot, setting.rank - 1, result);
  schedule.wait(send_slot);
}

/// Adds what `peer` has sent to what this rank has: lower ranks first, so that both sides get the same bits.
inline void combine_with(Schedule& schedule, const Setting& setting, int peer, Region sum, Region mine,
                         Region received) {
  if (peer < setting.rank)
    schedule.combine(sum, received, mine);
  else
    schedule.combine(sum, mine, received);
}

/// Which halves this rank and its peer keep in one round of halving.
struct Round {
  int peer;
  core::Slice kept;   ///< by this rank
  core::Slice given;  ///< to the peer, which keeps it
};

/// The places of active ranks in the order of their parts. A place includes the part of a partner that stepped aside.
struct Places {
  explicit Places(const Setting& s) : setting{s}, fold{s.n_ranks, s.rank}, mine{swap(fold.active_rank)} {}

  /// The place of an active rank, or the active rank of a place.
  [[nodiscard]] int swap(int active) const { return setting.call.is_order_fixed ? fold.mirrored(active) : active; }
  [[nodiscard]] int rank_at(int place) const { return fold.rank_of(swap(place)); }

  /// The elements of `n` places from `first` on.
  [[nodiscard]] core::Slice window(int first, int n) const {
    const int begins = rank_at(first);
    const bool has_aside = begins < 2 * fold.extra;
    const std::size_t begin = setting.part(has_aside ? begins - 1 : begins).offset;
    return {begin, setting.part(rank_at(first + n - 1)).end() - begin};
  }
  /// The round in which windows of 2n places are halved.
  [[nodiscard]] Round round(int n) const {
    const int first = mine / n * n;
    return {.peer = rank_at(mine ^ n), .kept = window(first, n), .given = window(first ^ n, n)};
  }

  Setting setting;
  PowerOfTwoFold fold;
  int mine;
};

}  // namespace lockstep::comm
