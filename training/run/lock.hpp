// The lock of a run's folder: its file run.lock, which names the process that holds it.
// Invariant: of several runs that want a folder, one gets it; no run replaces the file, and only the run that created
// it and holds it removes it, when it gives up. A run that then has locked a removed file takes the lock again.
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

/// Does not wait. `opened`, for tests: called each time a file is open and not yet locked.
[[nodiscard]] RunLock take_run_lock(const std::string& folder, const std::function<void()>& opened = {});

/// Whether the file that is locked still has its name: no longer if it, or its folder, was renamed or removed.
[[nodiscard]] bool is_in_place(const RunLock& lock) noexcept;

/// For a run that leaves nothing behind: releases the lock, and removes the file if this process created it.
void remove_run_lock(RunLock& lock) noexcept;

}  // namespace lockstep::training
