// Ctrl-C, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 as a flag that long work checks.
// Invariant: the first signal only sets the flag, and prints a text if one is set; another one, at least a second
// later, ends the process as if no handler were installed. Handlers run on a stack of their own, because code generated
// at run time may keep data where the stack pointer points: single-precision matrix products of oneDNN before 3.11.2
// do, in heap memory (its issue 4845).
// Used by both programs and by nn/host, which starts threads for such code.
#pragma once

#include <csignal>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// From now on asking_signals() request an orderly end; SIGUSR1 and SIGTERM count as the signal that --nproc recorded.
/// Another signal, at least a second later, ends the process at once, except SIGUSR1 and SIGUSR2: launchers pass these
/// on without ending the job, so --nproc and batch systems use them, and --nproc repeats SIGUSR1. The calling thread,
/// the main one, gets a stack for handlers; threads that run generated code are started with NoInterrupts. `clock`
/// measures that second; it must never end.
void catch_interrupts(const core::Clock& clock = core::real_clock()) noexcept;

/// SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2, without SIGINT and SIGHUP where this process ignores them.
[[nodiscard]] sigset_t asking_signals() noexcept;

/// Returns the name of one of these: "SIGTERM", and "signal 15 (SIGTERM)".
[[nodiscard]] std::string_view signal_name(int signal) noexcept;
[[nodiscard]] std::string describe_signal(int signal);

/// While one lives, the calling thread takes none of these signals, and threads started meanwhile never do: the main
/// thread gets signals to the process.
class NoInterrupts {
 public:
  NoInterrupts() noexcept;
  ~NoInterrupts();
  NoInterrupts(const NoInterrupts&) = delete;
  NoInterrupts& operator=(const NoInterrupts&) = delete;

 private:
  sigset_t before_{};
};

/// While one lives, another SIGTERM or SIGHUP ends nothing, because the first request is being served: launchers and
/// batch systems repeat theirs. SIGINT, which comes from a user, still ends the process at once. Ranks that are threads
/// have one each.
class HoldRepeats {
 public:
  HoldRepeats() noexcept;
  ~HoldRepeats();
  HoldRepeats(const HoldRepeats&) = delete;
  HoldRepeats& operator=(const HoldRepeats&) = delete;
};

/// From now on the first SIGINT or SIGUSR1, the signals of a user's request, writes `text` to stderr at once, even
/// while the process is busy. `text` is never freed.
void announce_interrupt(const char* text) noexcept;

/// Returns the signal that this process received, or 0.
[[nodiscard]] int pending_interrupt() noexcept;

/// Collective: returns the signal that any rank received, with `mine` for this one; the same on all ranks; 0 if none.
/// If ranks received different signals, SIGINT wins, and SIGTERM loses to all but SIGUSR1.
[[nodiscard]] int agree_on_interrupt(const Communicator& world, int mine = pending_interrupt());

}  // namespace lockstep::runtime
