// Shared by pack, split and merge: a new set from existing ones.
// Invariant: without --compress, the new set is compressed like the (first) old one.
// Used by those three verbs.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

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

inline constexpr std::string_view repacking_memory_help = R"(
Memory: three decompressed chunks of the old and the new set per rank (some 30 MB by default). If a compressed set is
read in another order, up to 256 MiB of decompressed chunks.
)";

}  // namespace lockstep::training::shard
