// Temporary files and folders: beside their final name, under one that nobody can guess.
// Invariant: each is created exclusively, never through a link; its maker holds a lock on it that ends with the
// process, so that leftovers of killed runs can be distinguished from what a run still writes.
// Used by core/pending, data/load/stage and the trainer.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <string>

#include "core/descriptor.hpp"

namespace lockstep::core {

struct Temporary {
  std::string path{};
  Descriptor descriptor{};  ///< holds the lock; for a file, also used for writing

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(descriptor); }
};

/// An empty file beside `final_path`, which is below the open folder `below` if it is relative. None on failure: errno
/// tells why.
[[nodiscard]] Temporary make_temporary_file(const std::string& final_path, int below = AT_FDCWD);
/// An empty folder beside `final_path`, with the permissions of `mode` that the umask leaves; failures as above.
[[nodiscard]] Temporary make_temporary_folder(const std::string& final_path, mode_t mode = 0777);
/// Makes an empty folder, over which the old one is renamed while a new one takes its place: remove_leftovers() only
/// reports it.
[[nodiscard]] Temporary make_folder_for_old(const std::string& final_path);

/// Removes, and reports, temporaries of FOLDER/NAME (of all names if `name` is empty) that killed runs of this user
/// have left. Those of a run on another node, or from before the last boot, are only reported, because they may still
/// be in use.
void remove_leftovers(const std::string& folder, const std::string& name) noexcept;

}  // namespace lockstep::core
