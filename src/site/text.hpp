// Pieces of text, as lists of words and values of directives have them.
// Invariant: pure; a view into the text that was given, any bytes will do.
// Used by the parsers of this folder.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::site {

/// Without white space at both ends.
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;

/// At each `separator`; "a,,b" has three parts, "" has one.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// What is between white space.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);

/// In any case of letters.
[[nodiscard]] bool contains_ignoring_case(std::string_view text, std::string_view part);

/// Of all of the text: "8", "-1".
[[nodiscard]] std::optional<long> whole_number(std::string_view text) noexcept;

/// core::near_miss() of what may be a name; nothing if it is longer than any, so that no text takes long.
[[nodiscard]] std::optional<std::string> near_name(std::string_view word, std::span<const std::string> candidates);

}  // namespace lockstep::site
