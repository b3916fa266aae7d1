// `lockstep train --self-test`: does this machine's device compute what its host does?
// Invariant: the same networks, weights and samples on both; nothing is kept.
// Used by `lockstep train`.
#pragma once

#include <string>
#include <vector>

#include "training/command.hpp"

namespace lockstep::training {

[[nodiscard]] bool asks_for_self_test(const std::vector<std::string>& arguments);

/// Throws core::Error (usage).
[[nodiscard]] Invocation parse_self_test(const std::vector<std::string>& arguments);

}  // namespace lockstep::training
