// The command `lockstep train`.
// Invariant: as for every command, parsing makes no MPI call.
// Used by training/command.
#pragma once

#include <string>
#include <vector>

#include "training/command.hpp"

namespace lockstep::training {

/// `arguments`: after "train".
[[nodiscard]] Invocation parse_train(const std::vector<std::string>& arguments);

}  // namespace lockstep::training
