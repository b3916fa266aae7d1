// The value of one key: converts text to a member of a Recipe, and back.
// Invariant: assign() reads the text of to_toml() as the same value.
// Used by the parts of training/recipe/recipe.
#pragma once

#include <string>

#include "training/recipe/keys.hpp"
#include "training/recipe/setting.hpp"

namespace lockstep::training {

/// "a whole number from 1 to 256", "true or false", "one of sgd, adam".
[[nodiscard]] std::string expected_of(const Key& key);

/// Throws core::Error (usage) that names setting.origin.where if form, text or range do not fit.
void assign(const Key& key, const Setting& setting, Recipe& recipe);

[[nodiscard]] std::string to_toml(const Key& key, const Recipe& recipe);

/// As a word of the command line: texts without quotes.
[[nodiscard]] std::string to_word(const Key& key, const Recipe& recipe);

/// Whether it has a value that assign() would accept; false and an empty text mean none.
[[nodiscard]] bool is_set(const Key& key, const Recipe& recipe);

/// Makes is_set() false; for keys that exclude one another.
void unset(const Key& key, Recipe& recipe);

void copy_value(const Key& key, const Recipe& from, Recipe& to);

/// A TOML string. Throws core::Error (usage) naming `where` for control characters and text that is not UTF-8.
[[nodiscard]] std::string quote(const std::string& text, const std::string& where);

}  // namespace lockstep::training
