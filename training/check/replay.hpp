// lockstep train --replay: repeats a step that was not finite, on one rank, to find where it begins.
// Invariant: parameters, samples and random numbers are those of the run; nothing is written.
// Used by `lockstep train`.
#pragma once

#include <string>
#include <vector>

#include "training/command.hpp"

namespace lockstep::training {

/// Whether `arguments` of `lockstep train` contain --replay.
[[nodiscard]] bool asks_for_replay(const std::vector<std::string>& arguments);

/// Parses such `arguments`. Exit code 0: the step is not finite here either; 1: it is. Throws core::Error (usage).
[[nodiscard]] Invocation parse_replay(const std::vector<std::string>& arguments);

}  // namespace lockstep::training
