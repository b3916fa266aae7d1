// An open folder: it stays the same one, even if another takes its name.
// Invariant: a file in it is opened below it by a plain name, and never through a link.
// Used by the reader of checkpoints and by training/run/directory.
#pragma once

#include <string>
#include <string_view>

#include "core/descriptor.hpp"
#include "io/file.hpp"

namespace lockstep::io {

/// Whether it can be the name of a file in a folder: no path, neither "." nor "..", of 1 to 255 bytes.
[[nodiscard]] bool is_plain_name(std::string_view name) noexcept;

class Folder {
 public:
  /// Follows a link to the folder. Throws core::Error (usage) if it does not exist or is not a folder; (system) if no
  /// more files can be opened.
  explicit Folder(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
  [[nodiscard]] std::string path_of(const std::string& name) const;
  /// "2049:131", by which processes of one node tell it from other folders.
  [[nodiscard]] std::string identity() const;
  /// Whether its name still leads to it.
  [[nodiscard]] bool is_in_place() const noexcept;
  /// Whether the name exists in it, even as a dangling link.
  [[nodiscard]] bool has(const std::string& name) const noexcept;
  /// Errors as File's; also throws core::Error (usage) if it is a link, or `name` is not the name of a file in the
  /// folder.
  [[nodiscard]] File open(const std::string& name) const;

 private:
  std::string path_;
  core::Descriptor descriptor_;
};

}  // namespace lockstep::io
