// Characters of UTF-8 text, by their code points.
// Invariant: pure; accepts any bytes.
// Used by printable, and by readers of hand-written text.
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

/// Returns the first character of `text`, which is not empty; nothing if it is not UTF-8: too short, too long for its
/// code, a surrogate or beyond Unicode.
[[nodiscard]] std::optional<Character> first_character(std::string_view text);

/// Blanks other than ' ', and characters without a shape: zero-width marks, a byte order mark, soft hyphens.
[[nodiscard]] bool is_invisible(char32_t code) noexcept;

/// Controls, and characters that make a terminal show text in another order.
[[nodiscard]] bool steers_terminal(char32_t code) noexcept;

/// Whether `text` has characters that steer a terminal, or bytes that are not UTF-8.
[[nodiscard]] bool has_controls(std::string_view text);

/// "U+00A0".
[[nodiscard]] std::string name_of(char32_t code);
/// Returns the name of the first character of `text`, which is not empty; "byte ff" if it is not UTF-8.
[[nodiscard]] std::string name_of_first(std::string_view text);

}  // namespace lockstep::core
