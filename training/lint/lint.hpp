// `lockstep lint FILE...`: what would go wrong with a job script, before it is submitted.
// Invariant: no script is executed, and nothing but --json's file is written.
// Used by training/command; batch/check calls it.
#pragma once

#include <string>
#include <vector>

#include "training/command.hpp"

namespace lockstep::training::lint {

/// `arguments` after "lint". Throws core::Error (usage).
[[nodiscard]] Invocation parse(const std::vector<std::string>& arguments);

}  // namespace lockstep::training::lint
