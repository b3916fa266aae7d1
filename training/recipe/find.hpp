// Recipes by name: where they are, and which exist.
// Invariant: of two recipes with one name, the one in the user's folder counts, then the installed one.
// Used by the parts of training/recipe/recipe.
#pragma once

#include <string>
#include <vector>

namespace lockstep::training {

struct ShippedRecipe {
  std::string name{};
  std::string path{};
};

/// Of LOCKSTEP_RECIPES if set, of the installation, and of the source tree; sorted by name.
[[nodiscard]] std::vector<ShippedRecipe> list_recipes();

/// The path of a recipe by its name; a path that ends in .toml is returned as it is. Throws core::Error (usage) that
/// lists the names.
[[nodiscard]] std::string find_recipe(const std::string& word);

/// Of a recipe file.
[[nodiscard]] std::string read_recipe(const std::string& path);

/// The text of a recipe's first line, a comment.
[[nodiscard]] std::string summary_of(const std::string& text);

}  // namespace lockstep::training
