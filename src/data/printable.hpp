// Names from files, as they may be shown on a terminal.
// Invariant: the result has no control characters; text in UTF-8 stays as it is.
// Used by data/importers and training/shard.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace lockstep::data {

/// ESC becomes \x1b, a new line \x0a.
[[nodiscard]] inline std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += c;
  }
  return shown;
}

}  // namespace lockstep::data
