// CRC32C (Castagnoli), the check sum of shards: by the processor's instruction if it has one, else by tables.
// Invariant: equal on every machine; crc32c of "123456789" is 0xe3069283 (RFC 3720, B.4).
// Used by io/ and data/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::core {

/// Returns the check sum of `data`; given the check sum of earlier bytes, that of both together.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before = 0) noexcept;

}  // namespace lockstep::core
