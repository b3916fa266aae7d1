// How many different ids the columns of a set may hold, which an embedding needs to know.
// Invariant: covers all splits, so that training and evaluation have tables of one size.
// Used by the trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/format/manifest.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::data {

/// More than the rows of any embedding.
inline constexpr std::uint64_t most_ids = std::uint64_t{1} << 31;

/// Collective: for a set whose x are whole numbers, returns for each column of x the maximum plus one. The ranks
/// together read x of all samples once; calls `on_progress` now and then. Throws core::Error (usage) if a number is not
/// an id, and as ShardReader.
[[nodiscard]] std::vector<std::uint64_t> count_ids(const runtime::Communicator& world, const std::string& folder,
                                                   const Manifest& manifest, const std::function<void()>& on_progress);

}  // namespace lockstep::data
