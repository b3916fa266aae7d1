// Errors in comparisons of tests, by name: shown as a table if one exceeds its tolerance.
// Invariant: keeps for each name the largest error relative to its tolerance.
// Used by tests of nn/cuda, on recorders and GPUs.
#pragma once

#include <string>

namespace lockstep::test {

/// Returns whether it is below the tolerance.
bool note_error(const std::string& what, double error, double tolerance);

}  // namespace lockstep::test
