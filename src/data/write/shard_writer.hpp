// Writes one shard: an HDF5 file with x, y, id and the index of its chunks.
// Invariant: the same samples give the same bytes; memory is bounded by two chunks and the index.
// Used by data/write/pack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/format/manifest.hpp"
#include "data/format/spec.hpp"

namespace lockstep::data {

/// How a set is cut and stored.
struct ShardLayout {
  std::uint64_t shard_samples = 0;        ///< a multiple of chunk_samples; the last shard of a split may have fewer
  std::uint64_t chunk_samples = 0;        ///< per chunk of x and y; 0 where x is encoded
  std::uint64_t encoded_chunk_bytes = 0;  ///< per chunk of an encoded x
  io::Filter filter = io::Filter::none;
  int level = 0;
};

/// From the bytes a user asks for; `encoded_bytes` is the usual size of an encoded sample. Throws core::Error (usage)
/// if a sample is larger than a shard may be, or a chunk larger than HDF5 allows.
[[nodiscard]] ShardLayout make_layout(const SetSpec& spec, std::uint64_t shard_bytes, std::uint64_t chunk_bytes,
                                      io::Filter filter, int level, std::uint64_t encoded_bytes = 0);

/// Which shard of the set it is, and which samples of its split it holds: their ids are their positions in the split.
struct ShardPlace {
  std::string split;
  std::uint64_t number = 0;  ///< within the split
  std::uint64_t first_id = 0;
  std::uint64_t n_samples = 0;  ///< more than 0

  [[nodiscard]] std::string file_name() const;  ///< "train-00000.h5"
};

class ShardWriter {
 public:
  /// Makes the file `folder`/`place.file_name()`. core::Error (system) if it cannot be written.
  ShardWriter(const std::string& folder, const ShardPlace& place, const SetSpec& spec, const ShardLayout& layout);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  /// Any number of whole samples, in order.
  void append(std::span<const std::byte> x, std::span<const std::byte> y);
  /// One encoded sample.
  void append_encoded(std::span<const std::byte> image, std::span<const std::byte> y);
  /// After the last sample: writes ids and index, syncs the file to the disk, and says what the manifest needs.
  [[nodiscard]] ShardEntry finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::data
