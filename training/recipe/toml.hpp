// The TOML of a recipe file as settings; toml++ stays inside toml.cpp.
// Invariant: pure; settings come in the order of the file, with line and column.
// Used by the parts of training/recipe/recipe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "training/recipe/setting.hpp"

namespace lockstep::training {

/// Throws core::Error (usage) naming `file`, line and column if `text` is no TOML. Any key will do.
[[nodiscard]] std::vector<Setting> read_toml(std::string_view text, const std::string& file);

}  // namespace lockstep::training
