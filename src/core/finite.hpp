// Whether numbers are finite, at the speed of memory.
// Invariant: without an early exit, so that compilers vectorize it.
// Used by parallel/ and the trainer.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace lockstep::core {

/// Returns whether there is no NaN and no infinity.
[[nodiscard]] inline bool all_finite(std::span<const float> values) noexcept {
  constexpr std::uint32_t magnitude = 0x7fff'ffff, infinity = 0x7f80'0000;
  std::uint32_t n_others = 0;
  for (const float value : values) n_others |= (std::bit_cast<std::uint32_t>(value) & magnitude) >= infinity ? 1U : 0U;
  return n_others == 0;
}

}  // namespace lockstep::core
