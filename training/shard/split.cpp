// lockstep shard split: splits the samples of a set anew into train and val.
#include <fmt/ranges.h>

#include <memory>

#include "training/shard/repack.hpp"
#include "training/shard/verbs.hpp"

namespace lockstep::training::shard {
namespace {

struct SplitArguments {
  std::string folder;
  RepackOptions repack{};
  bool join = false;
};

std::unique_ptr<SetSource> open(const SplitArguments& o) {
  auto source = std::make_unique<SetSource>(std::vector{o.folder});
  const std::vector<std::string> names = core::names_of(source->splits());
  if (names.size() > 1 && !o.join)
    core::fail_usage({.what = fmt::format("'{}' is split already: {}", o.folder, fmt::join(names, ", ")),
                      .where = "lockstep shard split",
                      .expected = "a set with one split",
                      .fix = "--join puts all its samples together first, then splits them again"});
  source->join_splits();
  return source;
}

}  // namespace

constexpr std::string_view split_help = R"(  lockstep shard split d --out e --val 0.1 --seed 3

)";

Action declare_split(core::Flags& flags) {
  flags.note(split_help);
  auto o = std::make_shared<SplitArguments>();
  flags.word("FOLDER", o->folder);
  flags.heading("How to split");
  declare_val(flags, o->repack.pack,
              {"0.1: a tenth of the samples, chosen by the seed, becomes the split `val`", "required"});
  flags.toggle("--join", o->join, {"first join the samples of all splits", "refuse a set that is split"});
  declare_packing(flags, o->repack.pack);
  o->repack.pack.compares = true;
  flags.note("\nWithout --compress the compression stays.\n");
  flags.note(repacking_memory_help);
  return {.check =
              [o, &flags] {
                flags.require("--val", "SHARE, such as 0.1");
                check_repacking(flags, o->repack);
              },
          .run = [o](const runtime::Session& session) { return repack(session, o->repack, [o] { return open(*o); }); },
          .drill = o->repack.pack.drill};
}

}  // namespace lockstep::training::shard
