// The lock of a run's folder: its file run.lock, which names the process that holds it.
// Invariant: only one of several runs gets a folder. No run replaces the file; only the run that created it and holds
// it removes it, when it gives up. A run that has locked a removed file takes the lock again.
// Used by training/run/directory.
#pragma once

#include <functional>
#include <string>

#include "core/descriptor.hpp"

namespace lockstep::training {

struct RunLock {
  std::string path{};
  core::Descriptor file{};  ///< holds the lock until it is closed
  bool is_new = false;      ///< this process has created the file
  bool has_locks = true;    ///< the file system locks files
  int error = 0;            ///< errno if it was not taken: EWOULDBLOCK if another run has it, ENOENT without the folder
  std::string holder{};     ///< that run: "pid 4711 on node7"; empty if unknown
};

inline constexpr const char* run_lock_name = "run.lock";

/// Does not wait. `opened`, for tests: called each time a file is open and not yet locked.
[[nodiscard]] RunLock take_run_lock(const std::string& folder, const std::function<void()>& opened = {});

/// Writes the name of this process into the file, in place of everything else.
void sign(const RunLock& lock);

/// Whether the locked file still has its name: false if it, or its folder, was renamed or removed.
[[nodiscard]] bool is_in_place(const RunLock& lock) noexcept;

/// Whether another run may have `folder`, an open one, by now: it has a lock of this name, which is not `lock`.
[[nodiscard]] bool is_of_another(const RunLock& lock, int folder) noexcept;

/// For a run that leaves nothing behind: releases the lock, and removes the file if this process created it.
void remove_run_lock(RunLock& lock) noexcept;

}  // namespace lockstep::training
