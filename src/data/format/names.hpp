// Names from outside in one form of Unicode: what looks the same is the same.
// Invariant: a name that is not UTF-8 stays as it is; others refuse it.
// Used by importers for classes and columns, and by data/write/pack.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::data {

/// In the composed form (NFC), as most programs write it; macOS' file systems have the other one.
[[nodiscard]] std::string composed(std::string_view name);

/// Gives the same text for names that differ only by case, surrounding blanks or invisible characters: one is likely a
/// typo.
[[nodiscard]] std::string without_slips(std::string_view name);

}  // namespace lockstep::data
