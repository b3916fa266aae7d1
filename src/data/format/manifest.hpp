// manifest.json: the shards of a set, the description of a sample, and the digests against which everything is checked.
// Invariant: no date, host or path; the same input gives the same bytes; its last member is a digest of all bytes
// before it.
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
  io::Extent index{};           ///< the place of its index
  std::uint32_t index_crc = 0;  ///< ties the file to this manifest without reading the whole file
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

/// A file that a manifest covers.
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
  std::uint64_t chunk_samples = 0;  ///< per chunk of x and y; 0 if x is encoded
  std::vector<Split> splits{};
  std::vector<ExtraEntry> extras{};
  std::vector<std::string> notes{};  ///< what was changed, left out or assumed when the set was made: "left out: ..."

  /// Returns the first split if `name` is empty. Throws core::Error (usage) with the existing names if there is none of
  /// this name.
  [[nodiscard]] const Split& split(std::string_view name, std::string_view folder) const;
  /// All files that the manifest covers, shards first. Points into this manifest.
  [[nodiscard]] std::vector<ManifestFile> files() const;
};

inline constexpr std::string_view manifest_name = "manifest.json";

/// Throws core::Error (usage) if the name of a class is not UTF-8.
[[nodiscard]] std::string serialize(const Manifest& manifest);
/// Throws core::Error naming `where`: (failed) if its digest does not match; (usage) if it is not a manifest, has a
/// newer version, or has missing or contradictory members.
[[nodiscard]] Manifest parse_manifest(std::string_view text, const std::string& where);
/// Reads FOLDER/manifest.json.
[[nodiscard]] Manifest read_manifest(const std::string& folder);
/// Collective: rank 0 reads it and sends it to all ranks, so that a large job does not overload the file system.
[[nodiscard]] Manifest read_manifest(const std::string& folder, const runtime::Communicator& world);

}  // namespace lockstep::data
