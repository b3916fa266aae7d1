// Whether the keys of a recipe go together.
// Invariant: pure; about the recipe alone, whatever set and machine it will meet.
// Used by training/recipe/layers.
#pragma once

#include <cstdint>

#include "training/recipe/recipe.hpp"

namespace lockstep::training {

/// Samples of a batch over accumulate and, if deterministic, over lanes: what groups of normalization must divide.
[[nodiscard]] std::uint64_t least_part(const Recipe& recipe) noexcept;

/// Throws core::Error (usage) where a batch does not fall into equal parts, lanes and groups.
void check_cuts(const ResolvedRecipe& resolved);

/// The same, and where other keys contradict one another.
void check_recipe(const ResolvedRecipe& resolved);

}  // namespace lockstep::training
