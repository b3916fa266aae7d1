// A smaller recipe that fits into the memory for activations, if the whole does not.
// Invariant: the result is a recipe that training accepts on the same number of ranks, with any set.
// Used by memory.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "training/recipe/recipe.hpp"

namespace lockstep::training {

/// Bytes of the activations of this many samples of a rank at a time.
using PlanActivations = std::function<std::uint64_t(const Recipe&, std::uint64_t at_a_time)>;

struct TooLarge {
  std::uint64_t activations;  ///< bytes of a rank
  std::uint64_t at_a_time;    ///< samples that they belong to
  std::uint64_t batch;        ///< samples of all ranks in a step
  std::uint64_t room;         ///< bytes
};

struct Fitting {
  std::optional<Recipe> smaller{};   ///< with the largest batch that fits, and matching groups
  std::optional<Recipe> in_parts{};  ///< with the same batch in the fewest parts that fit
};

/// Calls `plan` a few times; it may throw core::Error for what is impossible.
[[nodiscard]] Fitting find_fitting(const Recipe& recipe, const TooLarge& all, int n_ranks, const PlanActivations& plan);

}  // namespace lockstep::training
