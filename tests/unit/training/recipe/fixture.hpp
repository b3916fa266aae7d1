// A recipe's text and a command line, combined as in `lockstep train`.
// Invariant: every refusal is a usage error.
// Used by the tests of training/recipe/recipe.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/text.hpp"
#include "training/recipe/keys.hpp"
#include "training/recipe/recipe.hpp"
#include "unit/training/refused.hpp"

namespace lockstep::training {

using Words = std::vector<std::string>;
using support::has;

inline const std::string toy = "model = \"toy\"\n";

/// `command_line`: RECIPE, then numbers and flags.
inline RecipeWords parse_words(const Words& command_line) {
  RecipeWords words;
  core::Flags flags{"lockstep train RECIPE"};
  declare_recipe(flags, words);
  flags.parse(command_line);
  return words;
}

/// Resolves the text as the file "folder/r.toml".
inline ResolvedRecipe resolve(const std::string& text, Words after_the_recipe = {}) {
  after_the_recipe.insert(after_the_recipe.begin(), "r.toml");
  return resolve_text(text, "folder/r.toml", parse_words(after_the_recipe));
}

/// A shipped recipe with the arguments after it.
inline ResolvedRecipe shipped(const Words& command_line) { return resolve_recipe(parse_words(command_line)); }

inline const Origin& origin_of(const ResolvedRecipe& resolved, std::string_view key) {
  return resolved.origins.at(find_key(key).value());
}

inline std::string refused_text(const std::string& text, const Words& after_the_recipe = {}) {
  return refused([&] { static_cast<void>(resolve(text, after_the_recipe)); });
}

}  // namespace lockstep::training
