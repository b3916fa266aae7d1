#include "core/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace lockstep::core {
namespace {

/// The first character of `text`, of several bytes of UTF-8.
struct Character {
  char32_t code;
  std::size_t n_bytes;
};

/// Nothing if it is none: too short, too long for its code, a surrogate or beyond Unicode.
std::optional<Character> first_of_several_bytes(std::string_view text) {
  struct Form {
    unsigned mask, lead;
    char32_t smallest;
  };
  constexpr Form forms[] = {{0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
  const auto lead = static_cast<unsigned char>(text.front());
  const auto* const form = std::ranges::find_if(forms, [lead](const Form& f) { return (lead & f.mask) == f.lead; });
  const auto n_bytes = static_cast<std::size_t>(form - std::begin(forms)) + 2;
  if (form == std::end(forms) || text.size() < n_bytes) return std::nullopt;
  char32_t code = lead & ~form->mask;
  for (const char c : text.substr(1, n_bytes - 1)) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) return std::nullopt;
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  }
  if (code < form->smallest || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return std::nullopt;
  return Character{code, n_bytes};
}

/// C1 controls, and what makes a terminal show text in another order than it is written.
bool steers(char32_t code) {
  return (code >= 0x80 && code < 0xa0) || code == 0x061c || code == 0x200e || code == 0x200f || code == 0x2028 ||
         code == 0x2029 || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const auto several = byte < 0x80 ? std::nullopt : first_of_several_bytes(text.substr(at));
    const std::size_t n_bytes = several ? several->n_bytes : 1;
    const bool is_kept = kept.find(text[at]) != std::string_view::npos;
    if (several ? steers(several->code) : byte == 0x7f)
      shown += fmt::format("\\u{:04x}", several ? static_cast<unsigned>(several->code) : byte);
    else if (!several && !is_kept && (byte < 0x20 || byte >= 0x80))
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += text.substr(at, n_bytes);
    at += n_bytes;
  }
  return shown;
}

}  // namespace lockstep::core
