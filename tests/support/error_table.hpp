// Errors that tests of parity have met, by what they compared: shown as a table if one is over its tolerance.
// Invariant: of each name the largest in relation to its tolerance is kept.
// Used by tests of nn/cuda, on recorders and GPUs.
#pragma once

#include <string>

namespace lockstep::test {

/// Returns whether it is below the tolerance.
bool note_error(const std::string& what, double error, double tolerance);

}  // namespace lockstep::test
