// One array of a shard on its way to the disk: rows in, chunks out, and their places and check sums in the end.
// Invariant: holds one chunk at most (and its encoded form); the same rows give the same bytes.
// Used by data/write/shard_writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/format/shard_index.hpp"
#include "data/format/spec.hpp"
#include "io/hdf5.hpp"

namespace lockstep::data {

class ArrayWriter {
 public:
  /// Chunks of `chunk_rows` rows, or of all where there are fewer: HDF5 allows no chunk larger than its data set.
  ArrayWriter(io::Hdf5File& file, std::string_view name, const ArraySpec& row, std::uint64_t n_rows,
              std::uint64_t chunk_rows, io::Filter filter, int level);

  /// Any number of whole rows.
  void append(std::span<const std::byte> rows);
  /// After the last row.
  [[nodiscard]] ArrayIndex finish();

 private:
  void write(std::span<const std::byte> chunk);

  ArrayIndex index_;
  int level_;
  io::Hdf5Dataset dataset_;
  std::uint64_t n_appended_ = 0;      ///< rows
  std::vector<std::byte> pending_{};  ///< of a chunk that is not yet full
};

}  // namespace lockstep::data
