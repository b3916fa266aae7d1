// A hash that adds up: that of a whole is the sum, modulo 2^64, of those of its parts.
// Invariant: it depends neither on the order nor on the division into parts. It is the same on every machine and GPU,
// and never changes, because ledgers are stored and digests are compared. It detects accidents, not intent.
// Used by data/ (ledger), optim/cuda (replicas) and the trainer (digest).
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace lockstep::core {

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014), which is one-to-one; the offset keeps 0 from being 0.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  std::uint64_t hash = value + 0x9e37'79b9'7f4a'7c15;
  hash = (hash ^ (hash >> 30)) * 0xbf58'476d'1ce4'e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d0'49bb'1331'11eb;
  return hash ^ (hash >> 31);
}

/// The hash of element `index` of an array. A change of the bits of one element always changes the sum.
[[nodiscard]] constexpr std::uint64_t sum_hash(std::uint64_t index, float value) noexcept {
  return mix((index << 32 | index >> 32) ^ std::bit_cast<std::uint32_t>(value));
}

/// The hash of elements `first`, `first` + 1, ... of an array.
[[nodiscard]] constexpr std::uint64_t sum_hash(std::uint64_t first, std::span<const float> values) noexcept {
  std::uint64_t sum = 0;
  for (const float value : values) sum += sum_hash(first++, value);
  return sum;
}

}  // namespace lockstep::core
