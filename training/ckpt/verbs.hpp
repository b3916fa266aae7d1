// `lockstep ckpt VERB`: every verb by its word on the command line.
// Invariant: each verb is one file of this folder; nothing but prune changes a checkpoint.
// Used by training/command.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "training/verb.hpp"

namespace lockstep::training::ckpt {

std::string ls_help();
Action declare_ls(core::Flags& flags);
std::string verify_help();
Action declare_verify(core::Flags& flags);
std::string diff_help();
Action declare_diff(core::Flags& flags);
std::string cat_help();
Action declare_cat(core::Flags& flags);
std::string export_help();
Action declare_export(core::Flags& flags);
std::string import_help();
Action declare_import(core::Flags& flags);
std::string prune_help();
Action declare_prune(core::Flags& flags);
std::string bench_help();
Action declare_bench(core::Flags& flags);

inline constexpr std::array<Verb, 8> verbs{{
    {"ls", "the checkpoints of a run, and where each stands", "ls FOLDER", ls_help, declare_ls},
    {"verify", "whether every byte is what it was when it was written", "verify FOLDER", verify_help, declare_verify},
    {"diff", "the first tensor and element in which two differ", "diff FOLDER FOLDER", diff_help, declare_diff},
    {"cat", "the tensors in one, or the values of some", "cat FOLDER [TENSOR...]", cat_help, declare_cat},
    {"export", "its tensors as a file of HDF5, .npz or .safetensors", "export FOLDER --out FILE", export_help,
     declare_export},
    {"import", "a file of weights of another program as one of ours", "import FILE --out FILE", import_help,
     declare_import},
    {"prune", "remove all but the newest whole ones, and what is left of others", "prune FOLDER", prune_help,
     declare_prune},
    {"bench", "how fast they are written and read, and what the file system can do", "bench FOLDER", bench_help,
     declare_bench},
}};

/// `arguments` after "ckpt". Throws core::Error (usage).
[[nodiscard]] Invocation parse(const std::vector<std::string>& arguments);

}  // namespace lockstep::training::ckpt
