// lockstep shard merge: merges several sets into one.
#include <memory>

#include "training/shard/repack.hpp"
#include "training/shard/verbs.hpp"

namespace lockstep::training::shard {
namespace {

struct MergeArguments {
  std::vector<std::string> folders{};
  RepackOptions repack{};
};

}  // namespace

constexpr std::string_view merge_help = R"(  lockstep shard merge monday tuesday --out week
  lockstep shard merge cats dogs --out pets --shuffle

Types, shapes, classes and extra files must be the same. Splits of the same name are joined in the order of the folders,
with new ids from 0. A set that is named twice, or a copy of another, is refused. Without --compress, the compression of
the first folder is used.

)";

Action declare_merge(core::Flags& flags) {
  flags.note(merge_help);
  auto o = std::make_shared<MergeArguments>();
  flags.words("FOLDER", o->folders, 2);
  declare_packing(flags, o->repack.pack);
  o->repack.pack.compares = true;
  flags.note(repacking_memory_help);
  return {.check = [o, &flags] { check_repacking(flags, o->repack); },
          .run =
              [o](const runtime::Session& session) {
                return repack(session, o->repack, [o] { return std::make_unique<SetSource>(o->folders); });
              },
          .drill = o->repack.pack.drill};
}

}  // namespace lockstep::training::shard
