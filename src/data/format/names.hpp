// Brings external names into one form of Unicode: names that look the same become the same.
// Invariant: a name that is not UTF-8 stays unchanged; other code refuses it.
// Used by importers for classes and columns, and by data/write/pack.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::data {

/// Returns the composed form (NFC), which most programs write; file systems of macOS use the other one.
[[nodiscard]] std::string composed(std::string_view name);

/// Returns the same text for names that differ only by case, surrounding blanks or invisible characters: one is likely
/// a typo.
[[nodiscard]] std::string without_slips(std::string_view name);

}  // namespace lockstep::data
