// Compression of chunks, in the byte formats of the registered HDF5 filters, so that other programs can read them.
// Invariant: decode(encode(x)) == x; damaged input is an error, never an overrun.
// Used by io/hdf5 (filters of the library) and data/ (hot path, without the library).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::io {

/// Enumerators equal the words of the command line. zstd and lz4 follow HDF5's byte shuffle.
enum class Filter { none, deflate, zstd, lz4 };
inline constexpr std::array<Filter, 4> all_filters{Filter::none, Filter::deflate, Filter::zstd, Filter::lz4};
[[nodiscard]] std::string_view name(Filter filter) noexcept;
[[nodiscard]] std::optional<Filter> find_filter(std::string_view word) noexcept;

/// Ids of the HDF5 filter registry: 1 deflate, 2 shuffle, 32004 lz4, 32015 zstd.
inline constexpr int deflate_id = 1;
inline constexpr int shuffle_id = 2;
inline constexpr int lz4_id = 32004;
inline constexpr int zstd_id = 32015;

/// `level` 0: the codec's default. `element_size` is for the shuffle.
[[nodiscard]] std::vector<std::byte> encode(Filter filter, int level, std::size_t element_size,
                                            std::span<const std::byte> chunk);

/// Decodes one chunk into exactly `chunk.size()` bytes. Returns false if `stored` is not such a chunk. Thread-safe.
[[nodiscard]] bool decode(Filter filter, std::size_t element_size, std::span<const std::byte> stored,
                          std::span<std::byte> chunk);

}  // namespace lockstep::io
