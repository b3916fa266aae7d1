// Shared by pack, split and merge: a new set from existing ones.
// Invariant: without --compress, the new set is compressed like the (first) old one.
// Used by those three verbs.
#pragma once

#include <functional>
#include <memory>

#include "training/command.hpp"
#include "training/shard/packing.hpp"
#include "training/shard/set_source.hpp"

namespace lockstep::training::shard {

struct RepackOptions {
  data::PackOptions pack{};
  bool keeps_filter = false;
};

/// After parsing: throws core::Error (usage).
void check_repacking(const core::Flags& flags, RepackOptions& options);

/// Collective: packs what `open` opens; returns the exit code.
int repack(const runtime::Session& session, const RepackOptions& options,
           const std::function<std::unique_ptr<SetSource>()>& open);

/// The lines of --help about memory.
[[nodiscard]] std::string repacking_memory_help();

}  // namespace lockstep::training::shard
