// Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 as a flag that long work looks at.
// Invariant: the first signal only sets the flag, and says so if asked to; another one, a second later or more, ends
// the process as if nothing had been installed.
// Used by both programs.
#pragma once

#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// From now on SIGINT, SIGTERM, SIGHUP (unless it is ignored) and SIGUSR1 ask for an orderly end; all but SIGINT count
/// as SIGTERM, and SIGUSR1 as what --nproc says it got. A second one, a second later, ends at once, but for SIGUSR1: it
/// is what launchers pass on without an end of their own, so --nproc and batch systems use it, and --nproc repeats it.
void catch_interrupts() noexcept;

/// From now on the first SIGINT or SIGUSR1, which are what a user's request comes as, writes `text` to stderr at once,
/// whatever the process is busy with. `text` is never freed.
void announce_interrupt(const char* text) noexcept;

/// The signal that came to this process, or 0.
[[nodiscard]] int pending_interrupt() noexcept;

/// Collective: the signal that came to any rank, the same on all; 0 if none. SIGINT wins over SIGTERM.
[[nodiscard]] int agree_on_interrupt(const Communicator& world);

}  // namespace lockstep::runtime
