// The GPUs of recorder_gpu.cpp, for a test that runs programs in its own process.
// Invariant: each that is opened begins with empty memory, whatever the run before has left.
// Used by tests/mpi.
#pragma once

#include <string>
#include <vector>

#include "support/recorder.hpp"

namespace lockstep::test {

/// The one that was opened last. There must be one.
[[nodiscard]] const Recorder& made_up_gpu();

/// Recorder::complaints() of all so far.
[[nodiscard]] std::vector<std::string> made_up_gpus_complain();

}  // namespace lockstep::test
