// Files that are read at given places.
// Invariant: a short read and a vanished file are errors that name the path.
// Used by io/hdf5 (not for its own access), data/ and the trainer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/descriptor.hpp"
#include "core/units.hpp"

namespace lockstep::io {

/// An open file for reading. Several threads may read at once.
class File {
 public:
  /// Throws core::Error (usage) if it does not exist, is not a regular file or cannot be read, (system) if no more
  /// files can be opened; names path and reason.
  explicit File(const std::string& path);
  /// Takes a file that the caller has opened, and calls `path`; errors as above.
  File(std::string path, core::Descriptor opened);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
  [[nodiscard]] core::Bytes size() const;
  /// Reads all of `data` from `offset` on. After transient errors (EIO, ESTALE, EAGAIN, EINTR) it tries again, up to 5
  /// times with growing, jittered pauses. Throws core::Error (usage) if the file ends too early, (system) if it cannot
  /// be read; both name path and range.
  void read_at(std::uint64_t offset, std::span<std::byte> data) const;
  /// Asks the system to forget the cached pages of this file (for cold measurements).
  void drop_cache() const;

 private:
  std::string path_;
  core::Descriptor descriptor_;
};

/// Returns the whole file as text; errors as File's. Throws core::Error (usage) for more than `most` bytes.
[[nodiscard]] std::string read_text(const std::string& path, core::Bytes most = {std::uint64_t{1} << 30});
[[nodiscard]] std::string read_text(const File& file, core::Bytes most = {std::uint64_t{1} << 30});

}  // namespace lockstep::io
