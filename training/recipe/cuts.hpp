// How a recipe divides a batch: among ranks, into groups of batch normalization, and into parts that save memory.
// Invariant: pure functions of recipe and rank count.
// Used by `lockstep train`.
#pragma once

#include <cstdint>

#include "training/recipe/recipe.hpp"

namespace lockstep::training {

[[nodiscard]] constexpr std::uint64_t div_up(std::uint64_t n, std::uint64_t size) noexcept {
  return n / size + (n % size != 0 ? 1 : 0);
}

/// Throws core::Error (usage) if batch, groups, lanes or order cannot be divided among this many ranks.
void check_ranks(const Recipe& recipe, int n_ranks);

/// The number of ranks whose parts of a batch form one group of batch normalization; 1 if a rank's part consists of
/// groups.
[[nodiscard]] int ranks_of_group(const Recipe& recipe, int n_ranks) noexcept;

/// A batch is divided among ranks and into their parts at multiples of this many samples: a group of batch
/// normalization, so that groups of a smaller batch have the same samples on any number of ranks. 1 without groups, and
/// for lanes, which are the same on any number of ranks.
[[nodiscard]] std::uint64_t unit_of_cuts(const Recipe& recipe) noexcept;

/// The begin of part `part` of `n` samples that pass through the network part by part.
[[nodiscard]] std::uint64_t begin_of_part(const Recipe& recipe, std::uint64_t n, std::uint64_t part) noexcept;

/// The greatest number of this rank's samples that pass through the network at a time.
[[nodiscard]] std::uint64_t samples_at_a_time(const Recipe& recipe, std::uint64_t most_of_rank, int n_ranks) noexcept;

}  // namespace lockstep::training
