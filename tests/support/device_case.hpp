// One collective call on memory of a device, compared with the result of a host algorithm.
// Invariant: compares bits, call after call on one plan, and overwrites the output in between.
// Used by the comm tests over threads and over MPI, on a recorder.
#pragma once

#include "comm/device_plan.hpp"
#include "comm/registry.hpp"
#include "comm/transport.hpp"

namespace lockstep::support {

/// The input of the ranks: small integers, for which any order of combining gives the same bits; or floats that every
/// sum rounds.
enum class Input { exact, rounded };

/// The compared plans.
struct DeviceCase {
  comm::DeviceGroup* group = nullptr;
  comm::Plan* host = nullptr;  ///< for the same call
  comm::Call call{};
  bool in_place = false;
  Input input = Input::rounded;
};

/// Collective: throws std::runtime_error if this rank's bits differ.
void check(comm::Transport& transport, const DeviceCase& which);

}  // namespace lockstep::support
