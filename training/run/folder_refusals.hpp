// The folder that a run wants: what it may contain, and the refusals.
// Invariant: writes nothing; every refusal is a core::Error that names --run-dir.
// Used by training/run/directory and training/run/run, on rank 0 only.
#pragma once

#include <string>

#include "training/run/lock.hpp"

namespace lockstep::training {

inline constexpr const char* run_dir_flag = "--run-dir";

/// Whether `folder` has files of a run, or checkpoints, even unreadable ones.
[[nodiscard]] bool holds_run(const std::string& folder);

/// Throws core::Error (usage) if a name that a run writes to exists as something else: a link, a pipe, a folder.
void refuse_foreign_names(const std::string& folder);

[[noreturn]] void refuse_other_run(const std::string& folder);
[[noreturn]] void refuse_run_under_way(const std::string& folder, const std::string& holder);
[[noreturn]] void refuse_lock(const RunLock& lock);
[[noreturn]] void refuse_shard_set(const std::string& folder);
/// Refuses a run without faults, which a fire drill must not resume.
[[noreturn]] void refuse_drill(const std::string& folder);
/// Throws core::Error (system): the run's own folder is no longer in its place.
[[noreturn]] void fail_for_lost_place(const std::string& folder);
/// Throws core::Error (system): its folder of checkpoints has become another one.
[[noreturn]] void fail_for_other_checkpoints(const std::string& checkpoints);
/// `error`: why the folder cannot be written to.
[[noreturn]] void refuse_place(const std::string& folder, int error);

}  // namespace lockstep::training
