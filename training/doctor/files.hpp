// What one node finds out about sets and folders by using them.
// Invariant: all of these may take for ever, as file systems may: they are questions for Asked. What they make is
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

/// Opens the set; `looks_at_shards`: are they all there, in full? As far as there is time for that.
[[nodiscard]] SetFacts open_set(const std::string& folder, bool looks_at_shards);

/// Reads up to most_read of its first split for up to `reading`, from shard `first` on (modulo the shards there are),
/// after asking the system to forget them. Only what concerns that is filled in.
[[nodiscard]] SetFacts read_sample(const std::string& folder, std::uint64_t first);

/// Writes, locks and removes a file in `folder`, or in the nearest above it that is there.
[[nodiscard]] FolderFacts use_folder(const std::string& folder);

/// The folder where MPI and others keep temporary files, by name, and what comes of using it.
struct TemporaryFacts {
  std::string complaint{};  ///< why no file can be made there; empty if one can
  std::string missing{};    ///< its name, if it is not there
};
[[nodiscard]] TemporaryFacts use_temporary_folder();

}  // namespace lockstep::training::doctor
