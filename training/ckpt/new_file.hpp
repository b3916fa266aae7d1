// The file that a verb of lockstep ckpt writes.
// Invariant: an existing file is replaced only with --force, and then by a whole one.
// Used by export and import.
#pragma once

#include <string>

#include "checkpoint/export.hpp"
#include "core/flags.hpp"
#include "training/ckpt/checkpoints.hpp"

namespace lockstep::training::ckpt {

struct NewFile {
  std::string path{};
  bool is_forced = false;
};

/// `help`: of --out.
void declare_new(core::Flags& flags, NewFile& file, const char* help);

/// Before work. Throws core::Error (usage) if the file exists and is not to be replaced, or cannot be written.
void check_new(const NewFile& file);

/// Writes all tensors of `from` and prints a line. Throws core::Error (usage) if one has no dimension, and as
/// checkpoint::save_weights().
void write_new(const NewFile& file, const checkpoint::TensorSource& from);

}  // namespace lockstep::training::ckpt
