// One value of a recipe as written, with its place.
// Invariant: a key needs only the text to parse its value, from a file or from the command line.
// Used by the parts of training/recipe/recipe.
#pragma once

#include <string>

namespace lockstep::training {

/// How it was written: `word` on the command line, where everything is text; otherwise a type of TOML.
enum class Form { word, boolean, integer, real, text, list, nested_list, table, date };

/// Later levels override earlier ones.
enum class Level { defaults, file, command_line };

struct Origin {
  Level level = Level::defaults;
  std::string note = "default";  ///< for readers: "recipe toy.toml:7", "flag --batch"
  std::string where{};           ///< for messages: "batch, toy.toml:7:9", "--batch"
  bool is_given = false;         ///< the user wrote it; otherwise it is derived or the default
};

struct Setting {
  std::string key{};
  Form form = Form::word;
  std::string text{};  ///< items of a list are separated by commas
  Origin origin{};
  std::string key_where{};  ///< for messages about the key itself
};

}  // namespace lockstep::training
