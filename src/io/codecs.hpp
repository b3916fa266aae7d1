// The codecs one by one: each processes bytes as its HDF5 filter stores them, without the shuffle.
// Invariant: unpack(pack(x)) == x; damaged input gives false or nothing, never an overrun. Thread-safe.
// Used by io/codec and by io/hdf5_filters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::io {

/// HDF5 counts the bytes of a chunk in 32 bits.
inline constexpr std::uint64_t most_chunk_bytes = 0xffffffff;

/// `level` 0: the codec's default.
[[nodiscard]] std::vector<std::byte> pack_deflate(int level, std::span<const std::byte> data);
[[nodiscard]] std::vector<std::byte> pack_zstd(int level, std::span<const std::byte> data);
[[nodiscard]] std::vector<std::byte> pack_lz4(int level, std::span<const std::byte> data);

/// Unpacks into exactly `data.size()` bytes; returns false if `packed` does not contain that many.
[[nodiscard]] bool unpack_deflate(std::span<const std::byte> packed, std::span<std::byte> data);
[[nodiscard]] bool unpack_zstd(std::span<const std::byte> packed, std::span<std::byte> data);
[[nodiscard]] bool unpack_lz4(std::span<const std::byte> packed, std::span<std::byte> data);

/// Returns the size that a piece claims to hold; nothing if it is not a piece, or exceeds a chunk.
[[nodiscard]] std::optional<std::size_t> unpacked_size_zstd(std::span<const std::byte> packed);
[[nodiscard]] std::optional<std::size_t> unpacked_size_lz4(std::span<const std::byte> packed);

}  // namespace lockstep::io
