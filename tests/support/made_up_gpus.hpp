// The GPUs of recorder_gpu.cpp, for a test that runs programs in its own process.
// Invariant: each opened GPU begins with empty memory, whatever the previous run has left.
// Used by tests/mpi.
#pragma once

#include <string>
#include <vector>

#include "support/recorder.hpp"

namespace lockstep::test {

/// The GPU that was opened last; there must be one.
[[nodiscard]] const Recorder& made_up_gpu();

/// Recorder::complaints() of all GPUs so far.
[[nodiscard]] std::vector<std::string> made_up_gpus_complain();

}  // namespace lockstep::test
