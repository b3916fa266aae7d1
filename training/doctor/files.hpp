// Facts that one node learns about sets and folders by using them.
// Invariant: all of these may take forever, because file systems may; call them through Asked. Files that they make are
// removed.
// Used by collect.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "core/units.hpp"
#include "training/doctor/facts.hpp"

namespace lockstep::training::doctor {

inline constexpr core::Seconds reading{3};
inline constexpr core::Bytes most_read{256'000'000};

/// Opens the set; `looks_at_shards`: checks whether all of them exist in full, as far as there is time.
[[nodiscard]] SetFacts open_set(const std::string& folder, bool looks_at_shards);

/// Reads up to most_read of its first split for up to `reading`, from shard `first` on (modulo the number of shards).
/// Asks the system first to drop them from its cache. Fills in only these members.
[[nodiscard]] SetFacts read_sample(const std::string& folder, std::uint64_t first);

/// Writes, locks and removes a file in `folder`, or in its nearest existing parent.
[[nodiscard]] FolderFacts use_folder(const std::string& folder);

/// The folder for temporary files of MPI and others, and the result of using it.
struct TemporaryFacts {
  std::string complaint{};  ///< why no file can be made there; empty if one can
  std::string missing{};    ///< its name, if it does not exist
};
[[nodiscard]] TemporaryFacts use_temporary_folder();

}  // namespace lockstep::training::doctor
