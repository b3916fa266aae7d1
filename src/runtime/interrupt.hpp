// Ctrl-C, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 as a flag that long work looks at.
// Invariant: the first signal only sets the flag, and says so if asked to; another one, a second later or more, ends
// the process as if nothing had been installed.
// Signals are handled on a stack of their own, as code made at run time may keep data where the stack pointer points:
// single-precision matrix products of oneDNN before 3.11.2 do, in heap memory (its issue 4845).
// Used by both programs and by nn/host, which starts threads for such code.
#pragma once

#include <csignal>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// From now on asking_signals() ask for an orderly end; SIGUSR1 and SIGTERM count as what --nproc says it got. A second
/// one, a second later, ends at once, but for SIGUSR1 and SIGUSR2: they are what launchers pass on without an end of
/// their own, so --nproc and batch systems use them, and --nproc repeats SIGUSR1.
/// The calling thread, the main one, gets a stack for it; threads that run code as above are begun with NoInterrupts.
/// `clock`: tells what comes a second later; it must never end.
void catch_interrupts(const core::Clock& clock = core::real_clock()) noexcept;

/// SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2, without SIGINT and SIGHUP where this process ignores them.
[[nodiscard]] sigset_t asking_signals() noexcept;

/// Of one of these: "SIGTERM", and "signal 15 (SIGTERM)".
[[nodiscard]] std::string_view signal_name(int signal) noexcept;
[[nodiscard]] std::string describe_signal(int signal);

/// While one lives, the calling thread takes none of these signals, and threads begun meanwhile never do: the main
/// thread gets what was sent to the process.
class NoInterrupts {
 public:
  NoInterrupts() noexcept;
  ~NoInterrupts();
  NoInterrupts(const NoInterrupts&) = delete;
  NoInterrupts& operator=(const NoInterrupts&) = delete;

 private:
  sigset_t before_{};
};

/// While one lives, another SIGTERM or SIGHUP ends nothing, as what the first one asked for is being done: launchers
/// and batch systems repeat theirs. SIGINT, which is a user's, ends at once all the same. Ranks that are
/// threads have one each.
class HoldRepeats {
 public:
  HoldRepeats() noexcept;
  ~HoldRepeats();
  HoldRepeats(const HoldRepeats&) = delete;
  HoldRepeats& operator=(const HoldRepeats&) = delete;
};

/// From now on the first SIGINT or SIGUSR1, which are what a user's request comes as, writes `text` to stderr at once,
/// whatever the process is busy with. `text` is never freed.
void announce_interrupt(const char* text) noexcept;

/// The signal that came to this process, or 0.
[[nodiscard]] int pending_interrupt() noexcept;

/// Collective: the signal that came to any rank, as `mine` to this one; the same on all; 0 if none. Of several SIGINT
/// wins, and SIGTERM loses to all but SIGUSR1.
[[nodiscard]] int agree_on_interrupt(const Communicator& world, int mine = pending_interrupt());

}  // namespace lockstep::runtime
