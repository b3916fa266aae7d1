// Shared by import, synth, pack, split and merge: the flags of a new folder, the work itself, and its closing lines.
// Invariant: the folder is complete or does not exist.
// Used by those five verbs.
#pragma once

#include "core/flags.hpp"
#include "data/write/pack.hpp"
#include "runtime/session.hpp"

namespace lockstep::training::shard {

/// --out --force --shard-size --chunk-size --compress --level --shuffle --seed --inject
void declare_packing(core::Flags& flags, data::PackOptions& options);
/// --val
void declare_val(core::Flags& flags, data::PackOptions& options, const core::Help& help);
inline constexpr const char* val_of_input =
    "0.2: a fifth of the samples, chosen by the seed, becomes the split `val`, if the input has no `val`";

/// Throws core::Error (usage). `keeps_filter`: without --compress, the filter is not known yet.
void check_packing(const core::Flags& flags, const data::PackOptions& options, bool keeps_filter = false);

/// Collective: reports that a signal has ended the work, and returns the exit code.
int end_stopped(const runtime::Communicator& world);

/// Collective: packs with progress, prints the result, and returns the exit code.
int pack_and_report(const runtime::Session& session, data::Source& source, const data::PackOptions& options);

}  // namespace lockstep::training::shard
