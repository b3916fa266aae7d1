// The index of a shard: where each chunk of each array is in the file, and its check sums.
// Invariant: one index, read by one pread, is enough to read the shard without HDF5; it ends with its own CRC.
// Used by data/write/shard_writer (makes it), data/read/shard_reader and data/read/verify. Layout: share/doc/shards.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/codec.hpp"
#include "io/hdf5.hpp"

namespace lockstep::data {

/// Uncompressed chunks have a CRC32C per block of this many bytes (the last may be shorter), compressed ones only one.
inline constexpr std::uint64_t crc_block_bytes = 65536;

/// The arrays of an index; `x_offset` exists only if x is encoded.
inline constexpr std::string_view x_name = "x", y_name = "y", id_name = "id", x_offset_name = "x_offset";

/// One array of the shard: "x", "y", "id", and "x_offset" if x is encoded.
struct ArrayIndex {
  std::string name;                 ///< at most 15 characters
  std::uint64_t n_rows = 0;         ///< samples; for an encoded x, bytes
  std::uint64_t row_bytes = 0;      ///< after decoding
  std::uint64_t chunk_rows = 0;     ///< rows per chunk; the last chunk is padded with zeros to the same size
  std::uint32_t element_bytes = 1;  ///< for the shuffle
  io::Filter filter = io::Filter::none;
  std::vector<io::Extent> chunks{};
  std::vector<std::vector<std::uint32_t>> crcs{};  ///< by chunk

  [[nodiscard]] std::uint64_t chunk_bytes() const noexcept { return chunk_rows * row_bytes; }
  /// The number of check sums of a chunk.
  [[nodiscard]] std::uint64_t crcs_per_chunk() const noexcept {
    return filter == io::Filter::none ? (chunk_bytes() + crc_block_bytes - 1) / crc_block_bytes : 1;
  }
  /// The rows of this chunk, without the padding.
  [[nodiscard]] std::uint64_t rows_in(std::uint64_t chunk) const noexcept {
    return std::min(chunk_rows, n_rows - chunk * chunk_rows);
  }
};

struct ShardIndex {
  std::uint64_t n_samples = 0;
  std::uint64_t first_id = 0;  ///< global id of the first sample; ids of a shard are consecutive
  std::vector<ArrayIndex> arrays{};

  /// nullptr if none has this name.
  [[nodiscard]] const ArrayIndex* find(std::string_view name) const noexcept;
};

[[nodiscard]] std::vector<std::byte> serialize(const ShardIndex& index);

/// Throws core::Error (failed) naming `where` if `bytes` is not an index: wrong magic, version, length, CRC, or numbers
/// that contradict each other or `file_bytes`.
[[nodiscard]] ShardIndex parse_shard_index(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                                           const std::string& where);

}  // namespace lockstep::data
