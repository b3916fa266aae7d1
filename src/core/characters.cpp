#include "core/characters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace lockstep::core {

std::optional<Character> first_character(std::string_view text) {
  struct Form {
    unsigned mask, lead;
    char32_t smallest;
  };
  constexpr Form forms[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
  const auto lead = static_cast<unsigned char>(text.front());
  const auto* const form = std::ranges::find_if(forms, [lead](const Form& f) { return (lead & f.mask) == f.lead; });
  const auto n_bytes = static_cast<std::size_t>(form - std::begin(forms)) + 1;
  if (form == std::end(forms) || text.size() < n_bytes) return std::nullopt;
  char32_t code = lead & ~form->mask;
  for (const char c : text.substr(1, n_bytes - 1)) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) return std::nullopt;
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  }
  if (code < form->smallest || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return std::nullopt;
  return Character{code, n_bytes};
}

bool is_invisible(char32_t code) noexcept {
  return code == 0xa0 || code == 0xad || code == 0x1680 || code == 0x180e || (code >= 0x2000 && code <= 0x200d) ||
         code == 0x202f || code == 0x205f || (code >= 0x2060 && code <= 0x2064) || code == 0x3000 || code == 0xfeff;
}

bool steers_terminal(char32_t code) noexcept {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e || code == 0x200f ||
         code == 0x2028 || code == 0x2029 || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

bool has_controls(std::string_view text) {
  while (!text.empty()) {
    const auto first = first_character(text);
    if (!first || steers_terminal(first->code)) return true;
    text.remove_prefix(first->n_bytes);
  }
  return false;
}

std::string name_of(char32_t code) { return fmt::format("U+{:04X}", static_cast<unsigned>(code)); }

std::string name_of_first(std::string_view text) {
  const auto first = first_character(text);
  return first ? name_of(first->code) : fmt::format("byte {:02x}", static_cast<unsigned char>(text.front()));
}

}  // namespace lockstep::core
