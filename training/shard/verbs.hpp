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

VerbText import_help();
VerbText import_kind_help(std::string_view kind, core::Flags& flags);
Action declare_import(core::Flags& flags);
VerbText synth_help();
Action declare_synth(core::Flags& flags);
VerbText pack_help();
Action declare_pack(core::Flags& flags);
VerbText stat_help();
Action declare_stat(core::Flags& flags);
VerbText verify_help();
Action declare_verify(core::Flags& flags);
VerbText head_help();
Action declare_head(core::Flags& flags);
VerbText split_help();
Action declare_split(core::Flags& flags);
VerbText merge_help();
Action declare_merge(core::Flags& flags);
VerbText bench_help();
Action declare_bench(core::Flags& flags);

inline constexpr std::array<Verb, 9> verbs{{
    {"import", "make shards from files of other formats", "import KIND PATH --out FOLDER", import_help, declare_import,
     import_kind_help},
    {"synth", "make shards from a seed, without input", "synth KIND --out FOLDER", synth_help, declare_synth},
    {"pack", "copy a set with other chunks, shards or compression", "pack FOLDER --out FOLDER", pack_help,
     declare_pack},
    {"stat", "show what a set contains", "stat FOLDER", stat_help, declare_stat},
    {"verify", "verify every byte of a set", "verify FOLDER", verify_help, declare_verify},
    {"head", "show the first samples of a set", "head FOLDER", head_help, declare_head},
    {"split", "divide a set's samples into train and val", "split FOLDER --out FOLDER --val SHARE", split_help,
     declare_split},
    {"merge", "combine several sets into one", "merge FOLDER FOLDER... --out FOLDER", merge_help, declare_merge},
    {"bench", "measure how fast a set can be read, and what limits it", "bench FOLDER", bench_help, declare_bench},
}};

/// `arguments` after "shard". Throws core::Error (usage).
[[nodiscard]] Invocation parse(const std::vector<std::string>& arguments);

}  // namespace lockstep::training::shard
