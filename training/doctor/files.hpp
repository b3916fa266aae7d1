// What one node finds out about the set and the folder for checkpoints by using them.
// Invariant: each answers within its limit of time, whatever the file system does; what is made is removed.
// Used by collect.cpp.
#pragma once

#include <string>

#include "core/units.hpp"
#include "training/doctor/facts.hpp"

namespace lockstep::training::doctor {

inline constexpr core::Seconds patience{8};  ///< with a file system
inline constexpr core::Seconds reading{3};
inline constexpr core::Bytes most_read{256'000'000};

/// Opens the set and looks whether its shards are there in full. `is_measured`: then reads up to most_read of its first
/// split for up to `reading`, from shard `first` on (modulo the shards there are), after asking the system to forget
/// them.
[[nodiscard]] SetFacts examine_set(const std::string& folder, bool is_measured, std::uint64_t first);

/// Writes, locks and removes a file in `folder`, or in the nearest above it that is there.
[[nodiscard]] FolderFacts examine_folder(const std::string& folder);

/// Why no file can be made where MPI and others keep temporary ones; empty if one can.
[[nodiscard]] std::string examine_temporary_folder();

}  // namespace lockstep::training::doctor
