// Pieces of text, as lists of words and values of directives have them.
// Invariant: pure; a view into the text that was given, any bytes will do.
// Used by the parsers of this folder.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::site {

/// Without white space at both ends.
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;

/// At each `separator`; "a,,b" has three parts, "" has one.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// What is between white space.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);

/// Of all of the text: "8", "-1".
[[nodiscard]] std::optional<long> whole_number(std::string_view text) noexcept;

}  // namespace lockstep::site
