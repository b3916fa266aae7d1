// Ctrl-C and SIGTERM as a flag that long work looks at.
// Invariant: the first signal only sets the flag; the second one ends the process as if nothing had been installed.
// Used by main() and progress.
#pragma once

#include "runtime/communicator.hpp"

namespace lockstep::training {

/// From now on SIGINT and SIGTERM ask for an orderly end.
void catch_interrupts() noexcept;

/// The signal that came to this process, or 0.
[[nodiscard]] int pending_interrupt() noexcept;

/// Collective: the signal that came to any rank, the same on all; 0 if none.
[[nodiscard]] int agree_on_interrupt(const runtime::Communicator& world);

}  // namespace lockstep::training
