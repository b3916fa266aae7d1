// The memory available to this process: on its node, in its control group, and within its own limits.
// Invariant: reads what the system reports now; allocates nothing.
// Used by the programs before they allocate, and by data/load/loader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/units.hpp"

namespace lockstep::runtime {

/// Memory that this node can still give, in bytes (MemAvailable, or the rest of the control group's limit if that is
/// less); 0 if unknown.
[[nodiscard]] core::Bytes available_memory();

/// Returns what the control group of this folder, version 1 or 2, may still use: its limit minus what it holds and
/// cannot drop. Returns nothing if it has no limit.
[[nodiscard]] std::optional<std::uint64_t> left_in_cgroup(const std::filesystem::path& folder);

/// What the limits of this process (ulimit -v, ulimit -d) leave; the largest number if there is none.
struct LimitsLeft {
  std::uint64_t address_space = 0;  ///< of all mappings, including memory shared with others
  std::uint64_t data = 0;           ///< of memory that it does not share
};
[[nodiscard]] LimitsLeft limits_left();

/// Size of the largest cache of this processor; 32 MiB as a guess if the system does not report it.
[[nodiscard]] core::Bytes last_level_cache() noexcept;

}  // namespace lockstep::runtime
