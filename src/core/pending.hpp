// Files and folders that appear whole or not at all.
// Invariant: whatever has its final name is on the disk; an old one stays unchanged until the new one replaces it.
// Used by data/ and the programs, for everything they write.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/temporary.hpp"

namespace lockstep::core {

/// Writes a file under a temporary name, syncs it to the disk and renames it; on error an old file is untouched.
void write_whole(const std::string& path, std::span<const std::byte> content);

/// The same for a file in the open folder `folder`, which messages call `path`. The folder stays the same one if
/// another takes its name, and a link in the place of the file is replaced, not followed. Errors are Error (system).
void write_whole_below(int folder, const std::string& path, std::span<const std::byte> content);

/// Finds out before work whether a result can be written to `path`, and removes what killed runs have left of it.
/// Errors as PendingFile's; Error (usage) also if it would be inside a set of shards, is behind a link that another
/// user has made in a shared folder, or is write-protected.
void check_writable(const std::string& path, std::string_view flag);

/// What becomes of a link that has the name of a file to be written.
enum class Links { followed, replaced };

/// A file that is being written: `path()` is an empty temporary sibling of the final name, for those who write by name;
/// commit() syncs and renames it, the destructor removes what was not committed.
class PendingFile {
 public:
  /// Creates the temporary file, beside the file that a followed link leads to. Error (usage, naming `flag`) if its
  /// folder cannot be written to, or a name whose links are followed is not that of a file.
  explicit PendingFile(const std::string& final_path, std::string_view flag = "", Links links = Links::followed);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return temporary_.path; }
  /// Appends.
  void write(std::span<const std::byte> content);
  /// Other writers must have closed it. Replaces an old file.
  void commit();

 private:
  std::string final_path_;
  Temporary temporary_{};
  bool is_committed_ = false;
};

/// Names of an old folder's files, which are removed when a new folder replaces it; nothing: no old folder may exist.
using OldFiles = std::optional<std::set<std::string>>;

/// A folder that is being written: `path()` is a temporary sibling of the final name. commit() syncs and renames it;
/// the destructor removes it if it was not committed.
class PendingFolder {
 public:
  /// Creates the temporary folder, and removes what killed runs have left of it. Throws Error (usage, naming `flag`) if
  /// `final_path` exists and must not be replaced, or contains anything but `old_files`; or if its parent cannot be
  /// written to.
  PendingFolder(const std::string& final_path, OldFiles old_files, std::string_view flag);
  ~PendingFolder();
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return temporary_.path; }
  /// Files in it must be closed. Swaps it with an old folder atomically if the file system can, else sets the old one
  /// aside first; then removes its old files.
  void commit();

 private:
  void end_replacing(const Temporary& old);

  std::string final_path_;
  Temporary temporary_{};
  OldFiles old_files_;
  bool is_committed_ = false;
};

/// Starts writing a file to the disk while its owner continues; sync_to_disk() waits for that.
void begin_sync(const std::string& path) noexcept;
/// Calls fsync for a file or folder by name.
void sync_to_disk(const std::string& path);

}  // namespace lockstep::core
