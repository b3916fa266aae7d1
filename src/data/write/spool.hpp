// Bytes kept in a temporary file instead of memory.
// Invariant: written once, front to back, then read anywhere; the file has no name, so it never outlives the process.
// Used by the importers for what cannot be read in place (compressed files, parsed text), by data/write/shared_spools,
// and by data/write/shard_writer for encoded samples, because HDF5 wants the size of an array first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/descriptor.hpp"
#include "io/file.hpp"

namespace lockstep::data {

/// Where another process of the node finds a spool, as long as the process that made it has it open.
struct SpoolPlace {
  std::int64_t process = 0;
  std::int64_t descriptor = 0;
  std::uint64_t device = 0;  ///< with the inode: which file it must be
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
};

/// What a SpoolWriter has written. Reads from several threads at once are fine.
class Spool {
 public:
  /// Nothing if the place cannot be seen, as that of a process in another container.
  [[nodiscard]] static std::optional<Spool> open(const SpoolPlace& place);
  [[nodiscard]] SpoolPlace place() const;

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// All of `data` from `offset` on, which must lie within size().
  void read_at(std::uint64_t offset, std::span<std::byte> data) const;

 private:
  friend class SpoolWriter;
  Spool(std::string folder, core::Descriptor descriptor, std::uint64_t size)
      : folder_{std::move(folder)}, descriptor_{std::move(descriptor)}, size_{size} {}

  std::string folder_;
  core::Descriptor descriptor_;
  std::uint64_t size_;
};

/// TMPDIR, or else /tmp.
[[nodiscard]] std::string temporary_folder();

class SpoolWriter {
 public:
  /// Creates the file in `folder`. core::Error (system) naming the folder if it cannot.
  explicit SpoolWriter(std::string folder = temporary_folder());
  /// core::Error (system) if the disk is full.
  void append(std::span<const std::byte> data);
  [[nodiscard]] Spool finish() &&;

 private:
  void flush();

  std::string folder_;
  core::Descriptor descriptor_;
  std::vector<std::byte> pending_{};
  std::uint64_t flushed_ = 0;
};

}  // namespace lockstep::data
