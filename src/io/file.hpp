// Files read at given places, and files and folders that appear whole or not at all.
// Invariant: a short read, a vanished file and a full disk are errors that name the path; nothing half-written keeps its
// final name.
// Used by io/hdf5 (not for its own access), data/ and the programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/descriptor.hpp"
#include "core/temporary.hpp"
#include "core/units.hpp"

namespace lockstep::io {

/// An open file for reading. Reads from several threads at once are fine.
class File {
 public:
  /// core::Error (usage) if it is not there, no regular file or not readable, (system) if there is no room for another
  /// open file; names path and reason.
  explicit File(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] core::Bytes size() const;
  /// All of `data` from `offset` on. Errors that a file system gets over (EIO, ESTALE, EAGAIN, EINTR) are tried again, up
  /// to 5 times with growing, jittered pauses. Throws core::Error (usage) if the file ends before, (system) if it cannot
  /// be read; both name path and range.
  void read_at(std::uint64_t offset, std::span<std::byte> data) const;
  /// Asks the system to forget the cached pages of this file (for cold measurements).
  void drop_cache() const;

 private:
  std::string path_;
  core::Descriptor descriptor_;
};

/// The whole file as text; errors as File's. At most `most` bytes, else core::Error (usage).
[[nodiscard]] std::string read_text(const std::string& path, core::Bytes most = {std::uint64_t{1} << 30});

/// Writes a file under a temporary name, syncs it to the disk and renames it; on error the old file, if any, is untouched.
void write_whole(const std::string& path, std::span<const std::byte> content);

/// Finds out before work what write_whole() or a PendingFile would find out after it, and removes what killed runs have
/// left of the file. Errors as PendingFile's.
void check_writable(const std::string& path, std::string_view flag);

/// A file in the making: `path()` is an empty temporary sibling of the final name, for those who write by name; commit()
/// syncs and renames it, the destructor removes what was not committed.
class PendingFile {
 public:
  /// Creates the temporary file, beside the file that a link leads to. core::Error (usage, naming `flag`) if its folder is
  /// none one may write to, or something other than a file has the name.
  explicit PendingFile(const std::string& final_path, std::string_view flag = "");
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return temporary_.path; }
  /// Appends.
  void write(std::span<const std::byte> content);
  /// Whoever else wrote must have closed it. Replaces an old one.
  void commit();

 private:
  std::string final_path_;
  core::Temporary temporary_{};
  bool is_committed_ = false;
};

/// Names of the files that go with an old folder when a new one takes its place; none: there must be no old one.
using OldFiles = std::optional<std::set<std::string>>;

/// A folder in the making: `path()` is a temporary sibling of the final name; commit() syncs and renames it, the
/// destructor removes what was not committed.
class PendingFolder {
 public:
  /// Creates the temporary folder, and removes what killed runs have left of it. core::Error (usage, naming `flag`) if
  /// `final_path` exists and is not to be replaced, or holds anything else than `old_files`; or if its parent is no folder
  /// one may write to.
  PendingFolder(const std::string& final_path, OldFiles old_files, std::string_view flag);
  ~PendingFolder();
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return temporary_.path; }
  /// Files in it must be closed. An old folder is set aside first, and its old files are removed after.
  void commit();

 private:
  std::string final_path_;
  core::Temporary temporary_{};
  OldFiles old_files_;
  bool is_committed_ = false;
};

/// Lets the system write a file out while its owner does something else; sync_to_disk() waits for that.
void begin_sync(const std::string& path) noexcept;
/// fsync of a file or folder by name.
void sync_to_disk(const std::string& path);

}  // namespace lockstep::io
