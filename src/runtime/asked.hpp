// What a program with --nproc and its ranks tell each other: which signal asked for an end, that a rank exists, and how
// it ended.
// Invariant: launchers pass on SIGUSR1 alone, so it stands for other signals; its sender has recorded before which one.
// Used by supervise.cpp, guard.cpp, interrupt.cpp and the watchdog.
#pragma once

namespace lockstep::runtime {

/// Called before the launcher is started: creates a place that ranks can find.
void prepare_to_tell_signal();
void tell_signal(int signal) noexcept;
/// Whether MPI has started in a rank; true if that cannot be known.
[[nodiscard]] bool was_rank_started() noexcept;

/// In a rank, before anything else.
void find_place_to_tell() noexcept;
/// In a rank: whether such a program was found on this node.
[[nodiscard]] bool has_place_to_tell() noexcept;
/// In a rank, once MPI has started.
void tell_start() noexcept;
/// Called by a rank that ends with a code other than 0, because launchers may end with 0, 1, 9 or 255 after a rank
/// failed (Hydra 4). Returns false if another rank of the job has reported before.
bool tell_exit(int code) noexcept;
/// The first reported exit code; 0: none.
[[nodiscard]] int told_exit() noexcept;
/// The signal for which SIGUSR1, or a SIGTERM of the launcher, stands; 0: none was recorded. Signal handlers may call
/// it.
[[nodiscard]] int told_signal() noexcept;

}  // namespace lockstep::runtime
