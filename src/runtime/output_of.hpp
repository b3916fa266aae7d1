// The output of another program, for queries of the system that have no other interface.
// Invariant: leaves no process, and copies nothing of this one, because MPI's memory must not be copied.
// Used by `lockstep train`, which asks batch systems when its job ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"

namespace lockstep::runtime {

/// Runs `command`, found in PATH, with empty input. Returns its stdout, at most 1 MiB; nothing if it cannot be started,
/// ends with a code other than 0, or has not ended after `limit`: then it is killed.
[[nodiscard]] std::optional<std::string> output_of(const std::vector<std::string>& command, core::Seconds limit);

}  // namespace lockstep::runtime
