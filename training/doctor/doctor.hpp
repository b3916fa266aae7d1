// The command `lockstep doctor`: what would keep a job from running, told before it runs.
// Invariant: nothing is left behind, nothing hangs: each look that may never end has a limit, all together one minute.
// Used by training/command.
#pragma once

#include <string>
#include <vector>

#include "training/command.hpp"

namespace lockstep::training::doctor {

/// `arguments`: after "doctor".
[[nodiscard]] Invocation parse(const std::vector<std::string>& arguments);

}  // namespace lockstep::training::doctor
