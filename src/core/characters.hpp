// Characters of UTF-8 text, by their code points.
// Invariant: pure; any bytes will do.
// Used by printable, and by those who read text that is written by hand.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::core {

struct Character {
  char32_t code = 0;
  std::size_t n_bytes = 0;
};

/// The first character of `text`, which is not empty; nothing if it is not UTF-8: too short, too long for its code, a
/// surrogate or beyond Unicode.
[[nodiscard]] std::optional<Character> first_character(std::string_view text);

/// Blanks other than ' ', and what is not seen at all: zero-width marks, a byte order mark, soft hyphens.
[[nodiscard]] bool is_invisible(char32_t code) noexcept;

/// Controls, and what makes a terminal show text in another order than it is written.
[[nodiscard]] bool steers_terminal(char32_t code) noexcept;

/// Whether `text` has what steers a terminal, or bytes that are not UTF-8.
[[nodiscard]] bool has_controls(std::string_view text);

/// "U+00A0".
[[nodiscard]] std::string name_of(char32_t code);
/// Returns the name of the first character of `text`, which is not empty; "byte ff" if it is not UTF-8.
[[nodiscard]] std::string name_of_first(std::string_view text);

}  // namespace lockstep::core
