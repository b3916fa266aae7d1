// Whether the keys of a recipe fit together.
// Invariant: pure; concerns only the recipe, for any set and machine.
// Used by training/recipe/merged_settings.
#pragma once

#include <cstdint>

#include "training/recipe/recipe.hpp"

namespace lockstep::training {

/// Samples of a batch, divided by accumulate and, if deterministic, by lanes; groups of normalization must divide this.
[[nodiscard]] std::uint64_t least_part(const Recipe& recipe) noexcept;

/// Throws core::Error (usage) if a batch cannot be divided into equal parts, lanes and groups.
void check_cuts(const ResolvedRecipe& resolved);

/// As check_cuts(), and also throws if other keys contradict one another.
void check_recipe(const ResolvedRecipe& resolved);

}  // namespace lockstep::training
