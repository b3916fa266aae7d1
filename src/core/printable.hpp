// Names from files and users, as they may be shown on a terminal.
// Invariant: the result is UTF-8, and nothing in it steers a terminal or turns the order of what it shows; shown once
// more, it stays as it is.
// Used by everything that prints, and where a name becomes part of a line or table.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::core {

/// ESC becomes \x1b, a new line \x0a, a byte that is no UTF-8 \xff; DEL, C1 controls and marks of the direction of
/// writing become \u009b or the like, as JSON has them. What is not seen becomes its code point: <U+00A0> is a no-break
/// space. Characters in `kept` stay.
[[nodiscard]] std::string printable(std::string_view text, std::string_view kept = {});

}  // namespace lockstep::core
