// The main() of MPI tests: every rank runs all tests, the job passes if they pass on every rank.
// Invariant: rank 0 prints the usual lines; other ranks print failures only, with their rank.
// Used by the GoogleTest binaries of tests/mpi.
#pragma once

#include "runtime/session.hpp"

namespace lockstep::support {

/// The session main() holds for the whole program: MPI can be started once per process only.
[[nodiscard]] const runtime::Session& session();

[[nodiscard]] inline const runtime::Communicator& world() { return session().world(); }

/// Tells the watchdog that a test of several commands goes on, as each start of a test does.
void beat() noexcept;

}  // namespace lockstep::support
