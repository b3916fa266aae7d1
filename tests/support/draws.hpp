// How many settings a test draws, and from which seed on.
// Invariant: LOCKSTEP_DRAWS=200 LOCKSTEP_DRAW_SEED=1000 look further than the check does.
// Used by tests that draw settings.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace lockstep::support {

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::stoull(text) : otherwise;
}

[[nodiscard]] inline std::uint64_t number_of_draws(std::uint64_t otherwise) {
  return number_from("LOCKSTEP_DRAWS", otherwise);
}
[[nodiscard]] inline std::uint64_t first_draw(std::uint64_t otherwise) {
  return number_from("LOCKSTEP_DRAW_SEED", otherwise);
}

}  // namespace lockstep::support
