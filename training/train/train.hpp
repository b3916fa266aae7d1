// The command `lockstep train`.
// Invariant: as every command: parsing makes no MPI call.
// Used by training/command.
#pragma once

#include <string>
#include <vector>

#include "training/command.hpp"

namespace lockstep::training::train {

/// `arguments`: after "train".
[[nodiscard]] Invocation parse(const std::vector<std::string>& arguments);

}  // namespace lockstep::training::train
