// A folder that stays the same one, whatever has its name by now.
// Invariant: a file in it is opened below it by a plain name, and never through a link.
// Used by the reader of checkpoints.
#pragma once

#include <string>

#include "core/descriptor.hpp"
#include "io/file.hpp"

namespace lockstep::io {

class Folder {
 public:
  /// A link to it is followed. core::Error (usage) if it is not there or no folder; (system) if there is no room for
  /// another descriptor.
  explicit Folder(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string path_of(const std::string& name) const;
  /// Whether it is still what its name leads to.
  [[nodiscard]] bool is_in_place() const noexcept;
  /// Whether there is something of this name in it, be it a link to nothing.
  [[nodiscard]] bool has(const std::string& name) const noexcept;
  /// Errors as File's; also core::Error (usage) if it is a link, or `name` is none of a file in the folder.
  [[nodiscard]] File open(const std::string& name) const;

 private:
  std::string path_;
  core::Descriptor descriptor_;
};

}  // namespace lockstep::io
