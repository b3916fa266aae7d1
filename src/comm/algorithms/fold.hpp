// The steps by which ranks beyond the largest power of two take part: each gives its data to the next rank first, and
// gets its result last.
// Invariant: as PowerOfTwoFold.
// Used by the algorithms that work in pairs.
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

}  // namespace lockstep::comm
