// The main() of MPI tests: every rank runs all tests; the job passes if they pass on every rank.
// Invariant: rank 0 prints the usual lines; other ranks print failures only, with their rank.
// Used by the GoogleTest binaries of tests/mpi.
#pragma once

#include "runtime/session.hpp"

namespace lockstep::support {

/// The session that main() holds for the whole program, because MPI can start only once per process.
[[nodiscard]] const runtime::Session& session();

[[nodiscard]] inline const runtime::Communicator& world() { return session().world(); }

/// Tells the watchdog that a test of several commands continues, as each start of a test does.
void beat() noexcept;

}  // namespace lockstep::support
