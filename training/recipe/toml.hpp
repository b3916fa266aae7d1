// Reads the TOML of a recipe file as settings; toml++ is used only in toml.cpp.
// Invariant: pure; settings are in the order of the file, with line and column.
// Used by the parts of training/recipe/recipe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "training/recipe/setting.hpp"

namespace lockstep::training {

/// Throws core::Error (usage) naming `file`, line and column if `text` is not TOML. Accepts any key.
[[nodiscard]] std::vector<Setting> read_toml(std::string_view text, const std::string& file);

}  // namespace lockstep::training
