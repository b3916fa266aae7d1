// `lockstep` within a test's process: its command line, on ranks that are threads or the processes of the test.
// Invariant: as in program.hpp.
// Used by tests/ranks, tests/program and tests/mpi.
#pragma once

#include "core/clock.hpp"
#include "support/program.hpp"

namespace lockstep::support {

/// Runs `lockstep ARGUMENTS` on the host; rank r is on node `nodes[r]`, and computes with one thread. All have `clock`.
/// Faults of --inject strike their rank; those that are signals would strike the test's process.
[[nodiscard]] Ended run_lockstep(const std::vector<std::string>& arguments, const std::vector<int>& nodes = {0},
                                 const core::Clock& clock = core::real_clock());

/// Runs on one node; trainings get --threads 1, unless they give a number.
[[nodiscard]] Ended lockstep_on(std::vector<std::string> arguments, int n_ranks = 1);

/// Collective: the same, on the ranks of `world`, which are processes.
[[nodiscard]] Ended lockstep_together(std::vector<std::string> arguments, const runtime::Communicator& world);

}  // namespace lockstep::support
