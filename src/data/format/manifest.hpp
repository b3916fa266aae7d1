// manifest.json: which shards make up a set, what a sample is, and the digests everything is checked against.
// Invariant: no date, host or path; the same input gives the same bytes; its last member is a digest of all bytes
// before.
// Used by everything that opens or writes a set. Schema: share/schemas/shards-1.schema.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"
#include "data/format/spec.hpp"
#include "io/codec.hpp"
#include "io/hdf5.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::data {

struct ShardEntry {
  std::string file;  ///< name within the folder
  std::uint64_t n_samples = 0;
  std::uint64_t bytes = 0;
  std::string digest;           ///< of the whole file
  io::Extent index{};           ///< where its index lies
  std::uint32_t index_crc = 0;  ///< ties the file to this manifest without reading all of it
};

struct Split {
  std::string name;
  std::uint64_t n_samples = 0;
  std::vector<ShardEntry> shards{};

  [[nodiscard]] core::Bytes stored_bytes() const noexcept;
};

struct ExtraEntry {
  std::string file;
  std::uint64_t bytes = 0;
  std::string digest;
};

/// A file a manifest vouches for.
struct ManifestFile {
  std::string file;
  std::uint64_t bytes = 0;
  std::string digest;
  const ShardEntry* shard = nullptr;  ///< nothing for an extra one
  std::uint64_t first_id = 0;         ///< of a shard's samples: their position in the split
};

struct Manifest {
  SetSpec spec{};
  io::Filter filter = io::Filter::none;
  std::uint64_t chunk_samples = 0;  ///< per chunk of x and y; 0 where x is encoded
  std::vector<Split> splits{};
  std::vector<ExtraEntry> extras{};
  std::vector<std::string> notes{};  ///< what making the set has changed, left out or assumed: "left out: ..."

  /// The first if `name` is empty. core::Error (usage) naming the splits there are, if there is none of this name.
  [[nodiscard]] const Split& split(std::string_view name, std::string_view folder) const;
  /// All files it vouches for, shards first. Points into this manifest.
  [[nodiscard]] std::vector<ManifestFile> files() const;
};

inline constexpr std::string_view manifest_name = "manifest.json";

/// Throws core::Error (usage) if a name of a class is not UTF-8.
[[nodiscard]] std::string serialize(const Manifest& manifest);
/// Throws core::Error naming `where`: (failed) if its digest does not match, (usage) if it is not a manifest, has a
/// newer version, or its members are missing or contradict each other.
[[nodiscard]] Manifest parse_manifest(std::string_view text, const std::string& where);
/// Reads FOLDER/manifest.json.
[[nodiscard]] Manifest read_manifest(const std::string& folder);
/// Collective: reads it on rank 0 and sends it to all, so that a large job does not overrun the file system.
[[nodiscard]] Manifest read_manifest(const std::string& folder, const runtime::Communicator& world);

}  // namespace lockstep::data
