// The command `lockstep doctor`: reports what would stop a job, before it runs.
// Invariant: nothing is left behind, and nothing hangs: every question that may never be answered has a limit, all
// together one minute.
// Used by training/command.
#pragma once

#include <string>
#include <vector>

#include "training/command.hpp"

namespace lockstep::training::doctor {

/// `arguments`: after "doctor".
[[nodiscard]] Invocation parse(const std::vector<std::string>& arguments);

}  // namespace lockstep::training::doctor
