#include "core/printable.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "core/characters.hpp"

namespace lockstep::core {

std::string printable(std::string_view text, std::string_view kept) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const auto several = byte < 0x80 ? std::nullopt : first_character(text.substr(at));
    const std::size_t n_bytes = several ? several->n_bytes : 1;
    const bool is_kept = kept.find(text[at]) != std::string_view::npos;
    if (several && is_invisible(several->code))
      shown += fmt::format("<{}>", name_of(several->code));
    else if (several ? steers_terminal(several->code) : byte == 0x7f)
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
