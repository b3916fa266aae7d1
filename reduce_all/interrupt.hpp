// Ctrl-C and SIGTERM as a flag the measuring loop looks at.
// Invariant: the first signal only sets the flag; the second one ends the process as if nothing had been installed.
// Used by run and the sweep.
#pragma once

namespace lockstep::reduce_all {

/// From now on SIGINT and SIGTERM ask for an orderly end.
void catch_interrupts() noexcept;

/// The signal that came to this process, or 0.
[[nodiscard]] int pending_interrupt() noexcept;

}  // namespace lockstep::reduce_all
