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

/// To be called before MPI is initialised and before there are threads. The work goes on in a child process, to which
/// signals that ask for an end are passed on. If another signal kills the child, the guard names rank, host and signal
/// (not those that MPI aborted because another had died, where --nproc lets guards know) and leaves with
/// ExitCode::system: to the launcher a rank that failed, so it ends the job, with that exit code. Launchers that see a
/// process die by a signal may kill all others at once, and then nobody is left to say which it was. A child that stays
/// stopped for `timeout` and somewhat longer, so that watchdogs of other ranks speak first, is named and killed, with
/// ExitCode::stalled; `timeout` 0: never. The guard's exit code is that of its child otherwise. A launcher that stays
/// after its ranks is ended (lingering.hpp). `is_wanted_alone`: without a launcher too, where else nothing happens.
void guard_rank(const LauncherHint& hint, core::Seconds timeout, bool is_wanted_alone = false);

/// Called by the rank once MPI has started or is not needed: until then an exit code other than ours for a failed start
/// (usage, system, stalled) is MPI's own, which the guard turns into ExitCode::system.
void tell_of_start() noexcept;

/// For the rank: the process of its guard; 0: it has none.
[[nodiscard]] pid_t guard_of_rank() noexcept;

/// Called by the rank's main thread. Whether the rank, if its guard dies, is killed with it (at first), or only
/// continued if it is stopped (`outlives`), because a thread of the rank will notice, report it, and end the rank.
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
