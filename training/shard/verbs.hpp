// `lockstep shard VERB`: every verb by its word on the command line.
// Invariant: each verb is one file of this folder.
// Used by training/command.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "training/verb.hpp"

namespace lockstep::training::shard {

std::string narrow_import_help(std::string_view kind, core::Flags& flags);
Action declare_import(core::Flags& flags);
Action declare_synth(core::Flags& flags);
Action declare_pack(core::Flags& flags);
Action declare_stat(core::Flags& flags);
Action declare_verify(core::Flags& flags);
Action declare_head(core::Flags& flags);
Action declare_split(core::Flags& flags);
Action declare_merge(core::Flags& flags);
Action declare_bench(core::Flags& flags);

inline constexpr std::array<Verb, 9> verbs{{
    {"import", "make shards from files of other formats", "import KIND PATH --out FOLDER", declare_import,
     narrow_import_help},
    {"synth", "make shards from a seed, without input", "synth KIND --out FOLDER", declare_synth},
    {"pack", "copy a set with other chunks, shards or compression", "pack FOLDER --out FOLDER", declare_pack},
    {"stat", "show what a set contains", "stat FOLDER", declare_stat},
    {"verify", "verify every byte of a set", "verify FOLDER", declare_verify},
    {"head", "show the first samples of a set", "head FOLDER", declare_head},
    {"split", "divide a set's samples into train and val", "split FOLDER --out FOLDER --val SHARE", declare_split},
    {"merge", "combine several sets into one", "merge FOLDER FOLDER... --out FOLDER", declare_merge},
    {"bench", "measure how fast a set can be read, and what limits it", "bench FOLDER", declare_bench},
}};

/// `arguments` after "shard". Throws core::Error (usage).
[[nodiscard]] Invocation parse(const std::vector<std::string>& arguments);

}  // namespace lockstep::training::shard
