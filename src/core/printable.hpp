// Names from files and users, as they may be shown on a terminal.
// Invariant: the result has no control characters but those asked for; text in UTF-8 stays as it is.
// Used by messages of errors, data/importers and training/shard.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace lockstep::core {

/// ESC becomes \x1b, a new line \x0a; `kept` stay.
[[nodiscard]] inline std::string printable(std::string_view text, std::string_view kept = {}) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 || byte == 0x7f) && kept.find(c) == std::string_view::npos)
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += c;
  }
  return shown;
}

}  // namespace lockstep::core
