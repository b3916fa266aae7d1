// Makes names from files and users safe to show on a terminal.
// Invariant: the result is UTF-8, and nothing in it steers a terminal or changes the order in which text is shown;
// applied again, it changes nothing.
// Used by everything that prints, and where a name becomes part of a line or table.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::core {

/// ESC becomes \x1b, a new line \x0a, a byte that is not UTF-8 \xff; DEL, C1 controls and marks of the direction of
/// writing become \u009b or the like, as JSON has them. An invisible character becomes its code point: <U+00A0> is a
/// no-break space. Characters in `kept` stay.
[[nodiscard]] std::string printable(std::string_view text, std::string_view kept = {});

}  // namespace lockstep::core
