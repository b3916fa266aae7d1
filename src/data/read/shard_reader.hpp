// Reads one shard without HDF5: pread, check, decode.
// Invariant: no byte is delivered whose check sum was not compared; all members may be called from several threads at
// once.
// Used by data/read/shard_set.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/format/manifest.hpp"
#include "data/format/shard_index.hpp"
#include "io/file.hpp"

namespace lockstep::data {

/// Counts of the readers' work; shared by all readers of a loader.
struct ReadCounters {
  std::atomic<std::uint64_t> n_chunks{0};  ///< whole chunks or pieces of one
  std::atomic<std::uint64_t> bytes{0};     ///< as stored
  std::atomic<std::uint64_t> n_crc_failures{0};
};

/// What is wrong with a file of the set that does not have `expected` bytes: truncated, too long, or complete but of
/// another set.
[[nodiscard]] std::optional<std::string> examine_size(const io::File& file, std::uint64_t expected);

class ShardReader {
 public:
  /// Opens the file and reads its index. Throws core::Error (failed, exit 1) if the file is not the one that the
  /// manifest lists or is damaged; (usage) if it does not exist.
  ShardReader(const std::string& folder, const ShardEntry& entry, const SetSpec& spec, ReadCounters& counters);

  [[nodiscard]] const ShardIndex& index() const noexcept { return index_; }
  [[nodiscard]] const io::File& file() const noexcept { return file_; }

  /// Reads a whole chunk, decoded, without the padding of the last one: `out` holds its rows.
  void read_chunk(const ArrayIndex& array, std::uint64_t chunk, std::span<std::byte> out) const;
  /// Reads rows [first, first + n). For an uncompressed array, reads and checks only the blocks that contain them; for
  /// a compressed one, the whole chunks. A mismatch throws core::Error (failed) naming file, array, chunk, samples,
  /// expected and found.
  void read_rows(const ArrayIndex& array, std::uint64_t first, std::uint64_t n, std::span<std::byte> out) const;

  /// Reads a chunk as stored, including padding, and returns its defect: nothing, or one line as in the errors of
  /// read_chunk.
  [[nodiscard]] std::optional<std::string> examine_chunk(const ArrayIndex& array, std::uint64_t chunk) const;

 private:
  /// Reads bytes [begin, end) of an uncompressed chunk.
  void read_plain(const ArrayIndex& array, std::uint64_t chunk, std::uint64_t begin, std::span<std::byte> out) const;
  /// The same if `begin` is that of a block, and the end is that of a block or of the chunk.
  void read_blocks(const ArrayIndex& array, std::uint64_t chunk, std::uint64_t begin, std::span<std::byte> out) const;
  /// The file's length matched the manifest when it was opened, so an early end means damage.
  void read_stored(std::uint64_t address, std::span<std::byte> out) const;
  /// Reads rows [first, first + n) of a compressed chunk, counted from its begin.
  void read_compressed(const ArrayIndex& array, std::uint64_t chunk, std::uint64_t first,
                       std::span<std::byte> out) const;
  void check(const ArrayIndex& array, std::uint64_t chunk, std::uint64_t first_crc,
             std::span<const std::byte> stored) const;
  /// "x, chunk 3 (samples 83 to 167)", for rows counted from the chunk's begin.
  [[nodiscard]] std::string place(const ArrayIndex& array, std::uint64_t chunk, std::uint64_t first_row,
                                  std::uint64_t last_row) const;
  [[nodiscard]] std::string samples_of_bytes(std::uint64_t begin, std::uint64_t end) const;

  io::File file_;
  ShardIndex index_;
  ReadCounters& counters_;
};

}  // namespace lockstep::data
