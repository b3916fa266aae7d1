// What the program that --nproc was given to and its ranks tell each other: which signal asked for an end, that there
// is a rank, and how it has ended.
// Invariant: launchers pass on SIGUSR1 alone, so it stands for others; who sends it has told before for which.
// Used by supervise.cpp, guard.cpp and interrupt.cpp.
#pragma once

namespace lockstep::runtime {

/// Before the launcher is started: makes a place that ranks can find.
void prepare_to_tell_signal();
void tell_signal(int signal) noexcept;
/// Whether MPI has started in a rank; true if that cannot be known.
[[nodiscard]] bool was_rank_started() noexcept;

/// In a rank, before anything else.
void find_place_to_tell() noexcept;
/// In a rank: whether such a program, on this node, has been found.
[[nodiscard]] bool has_place_to_tell() noexcept;
/// In a rank, once MPI is there.
void tell_start() noexcept;
/// Of a rank that ends, unless with 0: launchers have been seen to end with 0, 1, 9 or 255 after one that failed (Hydra
/// 4). False if another rank of the job has told before.
bool tell_exit(int code) noexcept;
/// The first that was told; 0: none.
[[nodiscard]] int told_exit() noexcept;
/// What SIGUSR1, or a SIGTERM of the launcher, stands for; 0: nothing was told. May be called by a signal handler.
[[nodiscard]] int told_signal() noexcept;

}  // namespace lockstep::runtime
