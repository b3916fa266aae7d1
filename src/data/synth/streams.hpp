// The streams of random numbers of each synthesizer.
// Invariant: no two of (kind, split, index) share a stream, so no sample shares numbers with another.
// Used by data/synth/.
#pragma once

#include <cstdint>

#include "core/rng.hpp"

namespace lockstep::data {

enum class SynthKind : std::uint64_t { toy = 1, digits, images, ratings };

/// In addition to the splits 0 and 1: numbers of a class, a user or an item.
inline constexpr std::uint64_t class_stream = 2, user_stream = 3, item_stream = 4;

[[nodiscard]] inline core::Random synth_random(std::uint64_t seed, SynthKind kind, std::uint64_t split,
                                               std::uint64_t index) noexcept {
  return core::Random{seed, static_cast<std::uint64_t>(kind) << 60 | split << 56 | index};
}

/// Uniform in [low, high).
[[nodiscard]] inline float uniform(core::Random& random, float low, float high) noexcept {
  return low + (high - low) * static_cast<float>(random.next() >> 40) * 0x1p-24F;
}

}  // namespace lockstep::data
