// Files and folders in the making: beside the name they will have, under one that nobody can guess.
// Invariant: each is made exclusively, never through a link; its maker holds a lock on it that ends with the process,
// so that what a killed run has left can be told from what a run still writes.
// Used by core/pending, data/load/stage and the trainer.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/descriptor.hpp"

namespace lockstep::core {

struct Temporary {
  std::string path{};
  Descriptor descriptor{};  ///< holds the lock; of a file, writes to it

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(descriptor); }
};

/// An empty file beside `final_path`. None on failure: errno tells why.
[[nodiscard]] Temporary make_temporary_file(const std::string& final_path);
/// An empty folder beside `final_path`, with the permissions of `mode` that the umask leaves; failures as above.
[[nodiscard]] Temporary make_temporary_folder(const std::string& final_path, mode_t mode = 0777);
/// One whose place an old folder takes, until a new one is in its own: never removed by remove_leftovers(), only told.
[[nodiscard]] Temporary make_folder_for_old(const std::string& final_path);

/// Removes what killed runs of this user have left of temporaries of FOLDER/NAME, or of all names if `name` is empty,
/// and tells it. What a run on another node has made, or one before the last boot, is only told: whether it is still
/// written cannot be known here.
void remove_leftovers(const std::string& folder, const std::string& name) noexcept;

}  // namespace lockstep::core
