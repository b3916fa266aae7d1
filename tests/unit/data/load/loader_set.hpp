// A small set of shards with known content, in a temporary folder that goes with it.
// Invariant: byte j of sample i is byte_of(i, j), its label label_of(i); made without MPI.
// Used by the tests of the loader.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/pending.hpp"
#include "data/format/manifest.hpp"
#include "data/read/block.hpp"
#include "data/read/shard_set.hpp"
#include "data/write/shard_writer.hpp"

namespace lockstep::data {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-loader-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

[[nodiscard]] inline std::byte byte_of(std::uint64_t id, std::uint64_t index) {
  return static_cast<std::byte>(id * 131 + index * 7 + (id >> 8) * 17);
}
[[nodiscard]] inline std::byte label_of(std::uint64_t id) { return static_cast<std::byte>(id % 10); }

/// What a set is made of.
struct SetShape {
  std::uint64_t n_samples = 100;
  std::vector<std::uint64_t> x_shape{8, 8, 3};  ///< of uint8; ignored if encoded
  std::uint64_t shard_samples = 40;
  std::uint64_t chunk_samples = 8;
  io::Filter filter = io::Filter::none;
  bool is_encoded = false;  ///< x is then a PPM image of 6 to 8 rows and 6 columns
};

[[nodiscard]] inline SetSpec spec_of(const SetShape& shape) {
  SetSpec spec;
  spec.x.shape = shape.is_encoded ? std::vector<std::uint64_t>{} : shape.x_shape;
  spec.encoding = shape.is_encoded ? "image" : "raw";
  for (int label = 0; label < 10; ++label) spec.classes.push_back(std::to_string(label));
  return spec;
}

[[nodiscard]] inline std::vector<std::byte> sample_of(const SetShape& shape, std::uint64_t id) {
  std::vector<std::byte> x;
  std::uint64_t n = spec_of(shape).x.bytes();
  if (shape.is_encoded) {
    const std::uint64_t rows = 6 + id % 3;
    for (const char c : "P6\n6 " + std::to_string(rows) + "\n255\n") x.push_back(static_cast<std::byte>(c));
    n = rows * 6 * 3;
  }
  for (std::uint64_t index = 0; index < n; ++index) x.push_back(byte_of(id, index));
  return x;
}

/// Writes split "train" to `folder`.
inline void write_set(const std::filesystem::path& folder, const SetShape& shape) {
  const SetSpec spec = spec_of(shape);
  const ShardLayout layout{.shard_samples = shape.shard_samples,
                           .chunk_samples = shape.is_encoded ? 0 : shape.chunk_samples,
                           .encoded_chunk_bytes = 2048,
                           .filter = shape.filter};
  Split split{.name = "train", .n_samples = shape.n_samples};
  for (std::uint64_t first = 0; first < shape.n_samples; first += shape.shard_samples) {
    const std::uint64_t n = std::min(shape.shard_samples, shape.n_samples - first);
    const ShardPlace place{.split = "train", .number = split.shards.size(), .first_id = first, .n_samples = n};
    ShardWriter writer{folder.string(), place, spec, layout};
    for (std::uint64_t id = first; id < first + n; ++id) {
      const std::byte label = label_of(id);
      const std::vector<std::byte> x = sample_of(shape, id);
      if (shape.is_encoded)
        writer.append_encoded(x, {&label, 1});
      else
        writer.append(x, {&label, 1});
    }
    split.shards.push_back(writer.finish());
  }
  Manifest manifest{.spec = spec, .filter = shape.filter, .chunk_samples = layout.chunk_samples};
  manifest.splits.push_back(std::move(split));
  const std::string text = serialize(manifest);
  core::write_whole((folder / manifest_name).string(), std::as_bytes(std::span{text}));
}

/// Changes one stored byte of sample `id`; of a compressed chunk, one byte of the chunk it is in.
inline void damage_sample(const std::filesystem::path& folder, std::uint64_t id) {
  const ShardSet set{folder.string(), "train"};
  const std::size_t shard = set.shard_of(id);
  const auto reader = set.open(shard);
  const ArrayIndex& x = *reader->index().find(x_name);
  const bool is_encoded = set.spec().is_encoded();
  const std::uint64_t row = is_encoded ? read_offsets(set, id, 1).front() + 20 : id - set.first_of(shard);
  const io::Extent& chunk = x.chunks[row / x.chunk_rows];
  const std::uint64_t within = x.filter == io::Filter::none ? row % x.chunk_rows * x.row_bytes : chunk.bytes / 2;

  std::fstream file{reader->file().path(), std::ios::in | std::ios::out | std::ios::binary};
  const auto offset = static_cast<std::streamoff>(chunk.address + within);
  file.seekg(offset);
  const int byte = file.get();
  file.seekp(offset);
  file.put(static_cast<char>(byte ^ 0x40));
}

}  // namespace lockstep::data
