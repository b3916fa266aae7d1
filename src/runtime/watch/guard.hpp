// The guard of a rank: the process that the launcher started stays behind and reports how its rank ended.
// Invariant: the guard makes no MPI call and outlives its rank; a rank whose guard is killed ends.
// Used by the main() of programs whose ranks may die while others wait for them.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/units.hpp"
#include "runtime/launcher.hpp"

namespace lockstep::runtime {

/// Call this before MPI is initialised and before there are threads. The work continues in a child process, and the
/// guard passes on signals that ask for an end. If another signal kills the child, the guard names rank, host and
/// signal. Then it leaves with ExitCode::system, so that the launcher sees a rank that failed, and ends the job with
/// that code. If the guard died by the signal, launchers might kill all other processes at once, and none would be left
/// to report. With --nproc, guards do not name ranks that MPI aborted because another one had died. The guard names and
/// kills a child that stays stopped for `timeout` and somewhat longer, so that watchdogs of other ranks speak first,
/// with ExitCode::stalled; `timeout` 0: never. Otherwise its exit code is that of its child. It ends a launcher that
/// stays after its ranks (lingering.hpp). `is_wanted_alone`: also without a launcher; by default a process without one
/// gets no guard.
void guard_rank(const LauncherHint& hint, core::Seconds timeout, bool is_wanted_alone = false);

/// Called by the rank once MPI has started or is not needed. Until then, exit codes other than usage, system and
/// stalled come from MPI, and the guard turns them into ExitCode::system.
void tell_of_start() noexcept;

/// For the rank: the process of its guard; 0: it has none.
[[nodiscard]] pid_t guard_of_rank() noexcept;

/// Called by the rank's main thread: what happens to the rank if its guard dies. At first it is killed, too. If it
/// `outlives` the guard, it is only continued if it is stopped, because one of its threads notices, reports that, and
/// ends it.
void outlive_guard(bool outlives) noexcept;

/// Called by the rank at its end: continues a stopped guard, because whoever waits for it would wait forever.
void wake_guard() noexcept;

/// The work that is left for a dead rank. `note`: passed by the rank; `reason`: "rank 1 on node7 (pid 4711) has died:
/// signal 9 (Killed)".
using LastDeed = void (*)(const std::string& note, const std::string& reason);

/// Called by the rank: if a signal kills it from now on, even one that asked for its end, its guard runs `deed` before
/// it leaves, for at most 2 s. Without a guard, or with a `note` of more than 4000 bytes, this has no effect.
void set_last_deed(LastDeed deed, std::string_view note) noexcept;

}  // namespace lockstep::runtime
