// Kills a launcher that stays after its ranks have ended, which would use up the job's time limit.
// Invariant: kills only the process that started these ranks, known by its pid and start time; one that ends by itself,
// has another child, or waits for the reader of its output is left alone.
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
  std::string name{};          ///< "mpirun", as in the system
  core::Descriptor handle{};   ///< pidfd; none if the kernel has none
  bool has_all_ranks = false;  ///< all ranks of the job are on this node
};

/// Returns the launcher of this rank, if its name is that of a launcher of one job and it belongs to this user: mpirun,
/// mpiexec, orterun, prterun and their daemons. Nothing for a step of srun, which ends by itself, or for daemons of
/// several jobs.
[[nodiscard]] std::optional<LauncherProcess> find_launcher(const LauncherHint& hint);

/// Returns once the launcher has ended: by itself, or killed after 15 s without a child, which is reported on its
/// stderr. Call this when a rank has ended.
void await_end_of(const LauncherProcess& launcher, const core::Clock& clock = core::real_clock());

/// The same in a separate process, which keeps nothing of this one open.
void leave_watch_over(const LauncherProcess& launcher) noexcept;

}  // namespace lockstep::runtime
