// The ways to compute a CRC32C, separately, so that tests can compare them.
// Invariant: all map a register (the complement of a check sum) and more bytes to the same next register.
// Used by core/crc32c.cpp and its test.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::core {

using Crc32cPath = std::uint32_t (*)(std::uint32_t crc, std::span<const std::byte> data) noexcept;

/// Castagnoli's polynomial, lowest bit first.
inline constexpr std::uint32_t crc32c_polynomial = 0x82f63b78;

/// x^`exponent` modulo the polynomial, lowest bit first.
constexpr std::uint32_t crc32c_power(std::uint32_t exponent) noexcept {
  std::uint32_t power = 0x80000000;
  for (; exponent > 0; --exponent) power = (power >> 1) ^ ((power & 1) != 0 ? crc32c_polynomial : 0);
  return power;
}

/// Processes eight bytes per step by tables (Kounavis & Berry 2008, "slicing-by-8").
[[nodiscard]] std::uint32_t crc32c_by_tables(std::uint32_t crc, std::span<const std::byte> data) noexcept;

/// Uses the processor's instructions; nullptr if it has none. 28 GB/s, while tables reach 2.
[[nodiscard]] Crc32cPath crc32c_by_instructions() noexcept;

/// Processes 64 bytes per instruction; nullptr if the processor cannot.
[[nodiscard]] Crc32cPath crc32c_by_wide_instructions() noexcept;

}  // namespace lockstep::core
