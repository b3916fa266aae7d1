// lockstep shard synth: a set from a seed.
#include "data/synth/synth.hpp"

#include <limits>
#include <memory>

#include "training/shard/misplaced.hpp"
#include "training/shard/packing.hpp"
#include "training/shard/verbs.hpp"

namespace lockstep::training::shard {
namespace {

struct SynthArguments {
  std::string kind;
  data::SynthOptions synth{};
  data::PackOptions pack{};
};

constexpr std::array<FlagUse, 6> synth_flags{{{"--height", "images"},
                                              {"--width", "images"},
                                              {"--channels", "images"},
                                              {"--classes", "images"},
                                              {"--users", "ratings"},
                                              {"--items", "ratings"}}};

void check(const core::Flags& flags, SynthArguments& o) {
  static_cast<void>(core::find_named(data::synthesizers, o.kind, "kind", "lockstep shard synth"));
  refuse_misplaced(flags, synth_flags, o.kind);
  check_packing(flags, o.pack);
  o.synth.seed = o.pack.seed;
}

int synth(const SynthArguments& o, const runtime::Session& session) {
  const data::Synthesizer& kind = core::find_named(data::synthesizers, o.kind, "kind", "lockstep shard synth");
  std::unique_ptr<data::Source> source;
  const auto complaint = core::complaint_of([&] { source = kind.open(o.synth); });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return pack_and_report(session, *source, o.pack);
}

std::string synth_help() {
  std::string text = R"(  lockstep shard synth digits --out d --samples 60000
  lockstep shard synth ratings --out r --samples 100000 --val 0.1
  lockstep shard synth images --out i --samples 10000 --height 224 --width 224 --classes 1000 --nproc 4

Kinds
)";
  for (const data::Synthesizer& kind : data::synthesizers)
    text += fmt::format("  {:<10} {}\n", kind.name, kind.summary);
  return text + '\n';
}

}  // namespace

Action declare_synth(core::Flags& flags) {
  flags.note(synth_help());
  auto o = std::make_shared<SynthArguments>();
  constexpr std::uint64_t one = 1;
  constexpr std::uint64_t most_samples = std::uint64_t{1} << 48;
  constexpr std::uint64_t largest_side = 65536;
  constexpr std::uint64_t most_ids = (std::uint64_t{1} << 31) - 1;  // ids are int32
  flags.word("KIND", o->kind);
  flags.heading("What to make");
  flags.number("--samples N", o->synth.samples, one, most_samples,
               {"samples of `train`; digits and images add their own `val`", "the kind's own"});
  flags.number("--height N", o->synth.height, one, largest_side, "images: rows");
  flags.number("--width N", o->synth.width, one, largest_side, "images: columns");
  flags.number("--channels N", o->synth.channels, one, std::uint64_t{4}, "images: 1 to 4");
  flags.number("--classes N", o->synth.classes, one, largest_side, "images: number of labels");
  flags.number("--users N", o->synth.users, one, most_ids, "ratings: number of users");
  flags.number("--items N", o->synth.items, one, most_ids, "ratings: number of items");
  declare_val(flags, o->pack, {val_of_input, "none"});
  declare_packing(flags, o->pack);
  flags.note(R"(
Memory: three chunks and one shard's check sums per rank (some 20 MB by default), for any number of samples.
)");
  return {.check = [o, &flags] { check(flags, *o); },
          .run = [o](const runtime::Session& session) { return synth(*o, session); },
          .drill = o->pack.drill};
}

}  // namespace lockstep::training::shard
