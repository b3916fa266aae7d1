// Files and folders that appear whole or not at all.
// Invariant: what has its final name is on the disk; an old one stays as it is until the new one takes its place.
// Used by data/ and the programs, for all they write.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/temporary.hpp"

namespace lockstep::core {

/// Writes a file under a temporary name, syncs it to the disk and renames it; on error the old file, if any, is
/// untouched.
void write_whole(const std::string& path, std::span<const std::byte> content);

/// Finds out before work whether a result can be written to `path`, and removes what killed runs have left of it.
/// Errors as PendingFile's; Error (usage) also if it would lie in a set of shards, is behind a link that another user
/// has made in a folder for all, or is write-protected.
void check_writable(const std::string& path, std::string_view flag);

/// A file in the making: `path()` is an empty temporary sibling of the final name, for those who write by name;
/// commit() syncs and renames it, the destructor removes what was not committed.
class PendingFile {
 public:
  /// Creates the temporary file, beside the file that a link leads to. Error (usage, naming `flag`) if its folder is
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
  Temporary temporary_{};
  bool is_committed_ = false;
};

/// Names of the files that go with an old folder when a new one takes its place; none: there must be no old one.
using OldFiles = std::optional<std::set<std::string>>;

/// A folder in the making: `path()` is a temporary sibling of the final name; commit() syncs and renames it, the
/// destructor removes what was not committed.
class PendingFolder {
 public:
  /// Creates the temporary folder, and removes what killed runs have left of it. Error (usage, naming `flag`) if
  /// `final_path` exists and is not to be replaced, or holds anything else than `old_files`; or if its parent is no
  /// folder one may write to.
  PendingFolder(const std::string& final_path, OldFiles old_files, std::string_view flag);
  ~PendingFolder();
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return temporary_.path; }
  /// Files in it must be closed. An old folder changes places with it in one go, where the file system can, and is set
  /// aside first elsewhere; its old files are removed after.
  void commit();

 private:
  void end_replacing(const Temporary& old);

  std::string final_path_;
  Temporary temporary_{};
  OldFiles old_files_;
  bool is_committed_ = false;
};

/// Lets the system write a file out while its owner does something else; sync_to_disk() waits for that.
void begin_sync(const std::string& path) noexcept;
/// fsync of a file or folder by name.
void sync_to_disk(const std::string& path);

}  // namespace lockstep::core
