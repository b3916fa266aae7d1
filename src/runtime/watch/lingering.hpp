// A launcher that stays though its ranks have ended: it is ended, or the job would use up its time limit.
// Invariant: nothing is ended but the process that has started these ranks, known by its pid and start time; one that
// ends by itself, has another child, or waits for the reader of its output is left alone.
// Used by guard.cpp and the watchdog.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "core/clock.hpp"
#include "core/descriptor.hpp"
#include "runtime/launcher.hpp"

namespace lockstep::runtime {

struct LauncherProcess {
  pid_t process = 0;
  std::uint64_t start_time = 0;
  std::string name{};          ///< "mpirun", as the system has it
  core::Descriptor handle{};   ///< pidfd; none where the kernel has none
  bool has_all_ranks = false;  ///< of the job: on this node
};

/// That of this rank, if it is one of a single job by its name and this user's: mpirun, mpiexec, orterun, prterun and
/// their daemons. Nothing of a step of srun, which ends by itself, or of what serves several jobs.
[[nodiscard]] std::optional<LauncherProcess> find_launcher(const LauncherHint& hint);

/// Returns once it has ended: by itself, or as it had no child for 15 s; that is told to its stderr. To be called when
/// a rank has ended.
void await_end_of(const LauncherProcess& launcher, const core::Clock& clock = core::real_clock());

/// The same in a process of its own, which keeps nothing of this one open.
void leave_watch_over(const LauncherProcess& launcher) noexcept;

}  // namespace lockstep::runtime
