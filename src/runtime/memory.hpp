// What memory there is for this process: of its node, its control group, and its own limits.
// Invariant: reads what the system says now; takes nothing.
// Used by the programs, before they take memory, and by data/load/loader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/units.hpp"

namespace lockstep::runtime {

/// Memory this node can still give, in bytes (MemAvailable, or what the control group has left if that is less); 0 if
/// unknown.
[[nodiscard]] core::Bytes available_memory();

/// What the control group of this folder, of version 1 or 2, may still use: its limit less what it holds and cannot
/// drop. Nothing if it has no limit.
[[nodiscard]] std::optional<std::uint64_t> left_in_cgroup(const std::filesystem::path& folder);

/// What the limits of this process leave it (ulimit -v, ulimit -d); the largest number where there is none.
struct LimitsLeft {
  std::uint64_t address_space = 0;  ///< of all it maps, memory shared with others too
  std::uint64_t data = 0;           ///< of what it does not share
};
[[nodiscard]] LimitsLeft limits_left();

/// Size of the largest cache of this processor; a guess of 32 MiB where the system does not tell.
[[nodiscard]] core::Bytes last_level_cache() noexcept;

}  // namespace lockstep::runtime
