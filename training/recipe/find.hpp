// Recipes by name: where they are, and which exist.
// Invariant: for two recipes with one name, the one in the user's folder counts, then the installed one.
// Used by the parts of training/recipe/recipe.
#pragma once

#include <string>
#include <vector>

namespace lockstep::training {

struct ShippedRecipe {
  std::string name{};
  std::string path{};
};

/// Lists the recipes of LOCKSTEP_RECIPES if it is set, of the installation, and of the source tree, sorted by name.
[[nodiscard]] std::vector<ShippedRecipe> list_recipes();

/// Returns the path of a recipe by its name; returns a path that ends in .toml unchanged. Throws core::Error (usage)
/// that lists the names.
[[nodiscard]] std::string find_recipe(const std::string& word);

/// Returns the text of a recipe file.
[[nodiscard]] std::string read_recipe(const std::string& path);

/// The text of a recipe's first line, a comment.
[[nodiscard]] std::string summary_of(const std::string& text);

}  // namespace lockstep::training
