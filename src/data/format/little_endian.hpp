// Numbers in the byte order of the files, on any machine.
// Invariant: least significant byte first.
// Used by data/format, data/read, data/write and checkpoint/.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::data {

template <std::unsigned_integral T>
void append_little_endian(std::vector<std::byte>& bytes, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}

/// The number at the beginning of `bytes`, which must be long enough.
template <std::unsigned_integral T>
[[nodiscard]] T from_little_endian(std::span<const std::byte> bytes) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | (static_cast<T>(std::to_integer<T>(bytes[i]) << (8 * i))));
  return value;
}

}  // namespace lockstep::data
