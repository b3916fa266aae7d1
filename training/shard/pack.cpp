// lockstep shard pack: repacks a set's samples into other chunks, shards or compression.
#include <memory>

#include "training/shard/repack.hpp"
#include "training/shard/verbs.hpp"

namespace lockstep::training::shard {
namespace {

struct PackArguments {
  std::string folder;
  RepackOptions repack{};
};

}  // namespace

constexpr std::string_view pack_help =
    R"(  lockstep shard pack d --out dz --compress zstd --level 9      smaller on disk
  lockstep shard pack d --out dc --chunk-size 1M                less to decompress for one sample
  lockstep shard pack d --out ds --shuffle                      mixes samples that were sorted by class

Splits, ids within a split, classes and extra files stay the same; only --shuffle changes the order. Without --compress,
the compression stays the same.

)";

Action declare_pack(core::Flags& flags) {
  flags.note(pack_help);
  auto o = std::make_shared<PackArguments>();
  flags.word("FOLDER", o->folder);
  declare_packing(flags, o->repack.pack);
  flags.note(repacking_memory_help);
  return {.check = [o, &flags] { check_repacking(flags, o->repack); },
          .run =
              [o](const runtime::Session& session) {
                return repack(session, o->repack, [o] { return std::make_unique<SetSource>(std::vector{o->folder}); });
              },
          .drill = o->repack.pack.drill};
}

}  // namespace lockstep::training::shard
