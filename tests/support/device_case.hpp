// One collective call on memory of a device, compared with what an algorithm of the host gives.
// Invariant: what is compared are bits, call after call on one plan; in between the output is overwritten.
// Used by the comm tests over threads and over MPI, on a recorder.
#pragma once

#include "comm/device_plan.hpp"
#include "comm/registry.hpp"
#include "comm/transport.hpp"

namespace lockstep::support {

/// What the ranks bring: small integers, for which any order of combining gives the same bits; or floats that are
/// rounded by every sum.
enum class Input { exact, rounded };

/// What is compared.
struct DeviceCase {
  comm::DeviceGroup* group = nullptr;
  comm::Plan* host = nullptr;  ///< of the same call
  comm::Call call{};
  bool in_place = false;
  Input input = Input::rounded;
};

/// Collective: throws std::runtime_error where this rank's bits differ.
void check(comm::Transport& transport, const DeviceCase& which);

}  // namespace lockstep::support
