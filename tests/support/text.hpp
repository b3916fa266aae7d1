// Queries of texts for tests.
// Invariant: for tests only.
// Used by unit tests of every folder.
#pragma once

#include <string_view>

namespace lockstep::support {

[[nodiscard]] inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace lockstep::support
