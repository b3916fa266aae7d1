// Bytes kept in a temporary file instead of memory.
// Invariant: written once, front to back, then read anywhere; the file has no name, so it never outlives the process.
// Used by the importers for what cannot be read in place: compressed files and parsed text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/handle.hpp"
#include "io/file.hpp"

namespace lockstep::data {

/// What a SpoolWriter has written. Reads from several threads at once are fine.
class Spool {
 public:
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// All of `data` from `offset` on, which must lie within size().
  void read_at(std::uint64_t offset, std::span<std::byte> data) const;

 private:
  friend class SpoolWriter;
  Spool(core::UniqueHandle<io::DescriptorPolicy> descriptor, std::uint64_t size)
      : descriptor_{std::move(descriptor)}, size_{size} {}

  core::UniqueHandle<io::DescriptorPolicy> descriptor_;
  std::uint64_t size_;
};

class SpoolWriter {
 public:
  /// Creates the file in TMPDIR, or in /tmp. core::Error (system) naming the folder if it cannot.
  SpoolWriter();
  /// core::Error (system) if the disk is full.
  void append(std::span<const std::byte> data);
  [[nodiscard]] Spool finish() &&;

 private:
  void flush();

  core::UniqueHandle<io::DescriptorPolicy> descriptor_;
  std::vector<std::byte> pending_{};
  std::uint64_t flushed_ = 0;
};

}  // namespace lockstep::data
