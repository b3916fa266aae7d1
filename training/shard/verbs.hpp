// `lockstep shard VERB`: every verb by its word on the command line.
// Invariant: each verb is one file of this folder, and its help names each of its flags with its default.
// Used by training/command.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "training/verb.hpp"

namespace lockstep::training::shard {

std::string import_help();
std::string import_kind_help(std::string_view kind);
Action declare_import(core::Flags& flags);
std::string synth_help();
Action declare_synth(core::Flags& flags);
std::string pack_help();
Action declare_pack(core::Flags& flags);
std::string stat_help();
Action declare_stat(core::Flags& flags);
std::string verify_help();
Action declare_verify(core::Flags& flags);
std::string head_help();
Action declare_head(core::Flags& flags);
std::string split_help();
Action declare_split(core::Flags& flags);
std::string merge_help();
Action declare_merge(core::Flags& flags);
std::string bench_help();
Action declare_bench(core::Flags& flags);

inline constexpr std::array<Verb, 9> verbs{{
    {"import", "shards from files of other formats", "import KIND PATH --out FOLDER", import_help, declare_import,
     import_kind_help},
    {"synth", "shards from nothing but a seed", "synth KIND --out FOLDER", synth_help, declare_synth},
    {"pack", "the same samples in other chunks, shards or compression", "pack FOLDER --out FOLDER", pack_help,
     declare_pack},
    {"stat", "what is in a set", "stat FOLDER", stat_help, declare_stat},
    {"verify", "whether every byte of a set is what it was when it was written", "verify FOLDER", verify_help,
     declare_verify},
    {"head", "the first samples of a set", "head FOLDER", head_help, declare_head},
    {"split", "a set's samples split anew into train and val", "split FOLDER --out FOLDER --val SHARE", split_help,
     declare_split},
    {"merge", "several sets as one", "merge FOLDER FOLDER... --out FOLDER", merge_help, declare_merge},
    {"bench", "how fast a set can be read, and what limits it", "bench FOLDER", bench_help, declare_bench},
}};

/// `arguments` after "shard". Throws core::Error (usage).
[[nodiscard]] Invocation parse(const std::vector<std::string>& arguments);

}  // namespace lockstep::training::shard
