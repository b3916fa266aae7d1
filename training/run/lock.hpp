// The lock of a run's folder: its file run.lock, which names the process that has it.
// Invariant: of those that want one folder one gets it; no run replaces the file, and only the run that made it and has
// it removes it, as it gives up. Who then has locked what is no longer there takes the lock anew.
// Used by training/run/directory.
#pragma once

#include <functional>
#include <string>

#include "core/descriptor.hpp"

namespace lockstep::training {

struct RunLock {
  std::string path{};
  core::Descriptor file{};  ///< has the lock, until it is closed
  bool is_new = false;      ///< this process has made the file
  bool has_locks = true;    ///< the file system locks files
  int error = 0;            ///< why there is none: errno, EWOULDBLOCK if another run has it, ENOENT without the folder
  std::string holder{};     ///< that run: "pid 4711 on node7"; empty if it does not tell
};

inline constexpr const char* run_lock_name = "run.lock";

/// Waits for nobody. `opened`, of tests: called each time when a file is open and not locked yet.
[[nodiscard]] RunLock take_run_lock(const std::string& folder, const std::function<void()>& opened = {});

/// For a run that leaves nothing behind: gives the lock back, and removes the file if this process has made it.
void remove_run_lock(RunLock& lock) noexcept;

}  // namespace lockstep::training
