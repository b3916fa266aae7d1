// `lockstep train --self-test`: compares the results of this machine's device with those of its host.
// Invariant: the same networks, weights and samples on both; nothing is stored.
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
