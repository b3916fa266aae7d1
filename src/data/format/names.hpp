// Names from outside in one form of Unicode: what looks the same is the same.
// Invariant: a name that is no UTF-8 stays as it is, for others to refuse.
// Used by importers for classes and columns, and by data/write/pack.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::data {

/// In the composed form (NFC), as most programs write it; macOS' file systems have the other one.
[[nodiscard]] std::string composed(std::string_view name);

/// The same for names that differ by case, blanks around or characters that do not show: one of them is likely a slip.
[[nodiscard]] std::string without_slips(std::string_view name);

}  // namespace lockstep::data
