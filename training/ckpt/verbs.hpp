// `lockstep ckpt VERB`: every verb by its word on the command line.
// Invariant: each verb is one file of this folder; nothing but prune changes a checkpoint.
// Used by training/command.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "training/verb.hpp"

namespace lockstep::training::ckpt {

Action declare_ls(core::Flags& flags);
Action declare_verify(core::Flags& flags);
Action declare_diff(core::Flags& flags);
Action declare_cat(core::Flags& flags);
Action declare_export(core::Flags& flags);
Action declare_import(core::Flags& flags);
Action declare_prune(core::Flags& flags);
Action declare_bench(core::Flags& flags);

inline constexpr std::array<Verb, 8> verbs{{
    {"ls", "list the checkpoints of a run, with epoch and step", "ls FOLDER", declare_ls},
    {"verify", "verify every byte of checkpoints", "verify FOLDER", declare_verify},
    {"diff", "find the first tensor and element in which two differ", "diff FOLDER FOLDER", declare_diff},
    {"cat", "list the tensors of a checkpoint, or print values", "cat FOLDER [TENSOR...]", declare_cat},
    {"export", "write the tensors to an HDF5, .npz or .safetensors file", "export FOLDER --out FILE", declare_export},
    {"import", "convert another program's weights to a file of Lockstep's", "import FILE --out FILE", declare_import},
    {"prune", "remove all but the newest complete checkpoints, and leftovers", "prune FOLDER", declare_prune},
    {"bench", "measure how fast checkpoints are written and read, against the file system", "bench FOLDER",
     declare_bench},
}};

/// `arguments` after "ckpt". Throws core::Error (usage).
[[nodiscard]] Invocation parse(const std::vector<std::string>& arguments);

}  // namespace lockstep::training::ckpt
