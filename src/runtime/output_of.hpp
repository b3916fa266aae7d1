// What another program prints: a question to the system that has no other interface.
// Invariant: no process is left, and nothing of this one is copied, as MPI's memory must not be.
// Used by `lockstep train`, which asks batch systems when its job ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"

namespace lockstep::runtime {

/// Runs `command`, found by PATH, with nothing to read. Its stdout, of at most 1 MiB; nothing if it cannot be started,
/// ends with another code than 0, or has not ended after `limit`: then it is killed.
[[nodiscard]] std::optional<std::string> output_of(const std::vector<std::string>& command, core::Seconds limit);

}  // namespace lockstep::runtime
