// The guard of a rank: the process that the launcher started stays behind and tells how its rank has ended.
// Invariant: the guard makes no MPI call and outlives its rank; without its guard a rank does not live on.
// Used by the main() of programs whose ranks may die while others wait for them.
#pragma once

#include "runtime/launcher.hpp"

namespace lockstep::runtime {

/// To be called before MPI is initialised and before there are threads. Under a launcher the work goes on in a child process,
/// to which signals that ask for an end are passed on. If a signal kills the child, the guard names rank, host and signal
/// and leaves with ExitCode::system: to the launcher a rank that failed, so it ends the job, with that exit code. Launchers
/// that see a process die by a signal may kill all others at once, and then nobody is left to say which it was.
/// The guard's exit code is that of its child otherwise. Without a launcher nothing happens.
void guard_rank(const LauncherHint& hint);

}  // namespace lockstep::runtime
