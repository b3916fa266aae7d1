// lockstep shard head: the first samples of a set.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/print.hpp"
#include "core/printable.hpp"
#include "data/image/image.hpp"
#include "data/read/shard_set.hpp"
#include "training/shard/class_counts.hpp"
#include "training/shard/drawing.hpp"
#include "training/shard/verbs.hpp"

namespace lockstep::training::shard {
namespace {

struct HeadArguments {
  std::string folder;
  std::string split{};  // empty: the first
  std::uint64_t samples = 5;
};

std::string describe_label(const data::SetSpec& spec, std::span<const std::byte> y) {
  if (spec.classes.empty()) return "y: " + describe_values(spec.y, y);
  const std::uint64_t label = label_at(spec.y.dtype, y, 0);
  if (label >= spec.classes.size()) return fmt::format("label {}, which is not a class", describe_values(spec.y, y));
  return fmt::format("label {} ({})", label, core::printable(spec.classes[label]));
}

void print_raw(const data::ShardSet& set, std::uint64_t sample) {
  const data::SetSpec& spec = set.spec();
  std::vector<std::byte> x(spec.x.bytes());
  std::vector<std::byte> y(spec.y.bytes());
  set.read(sample, 1, x, y);
  core::print("id {}  {}  x: {}\n", sample, describe_label(spec, y), describe_values(spec.x, x));
  core::print(draw(spec.x, x));
}

void print_encoded(const data::ShardSet& set, std::uint64_t sample) {
  std::vector<std::byte> y(set.spec().y.bytes());
  const std::vector<std::byte> file = set.read_encoded(sample, y);
  core::print("id {}  {}  x: file of {} B", sample, describe_label(set.spec(), y), file.size());
  try {
    const data::Image image = data::decode_image(file, 3);
    const data::ArraySpec pixels{.dtype = core::DType::uint8, .shape = {image.height, image.width, image.channels}};
    core::print(", {} x {} pixels, {}\n{}", image.height, image.width, describe_values(pixels, image.pixels),
                draw(pixels, image.pixels));
  } catch (const data::ImageError& error) {
    core::print(", which cannot be decoded: {}\n", error.reason);
  }
}

int head(const HeadArguments& o, const runtime::Session& session) {
  const auto complaint = core::complaint_of([&] {
    if (session.world().rank() != 0) return;
    const data::ShardSet set{o.folder, o.split};
    for (std::uint64_t sample = 0; sample < std::min(o.samples, set.n_samples()); ++sample)
      if (set.spec().is_encoded())
        print_encoded(set, sample);
      else
        print_raw(set, sample);
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return core::to_int(core::ExitCode::ok);
}

}  // namespace

constexpr std::string_view head_help = R"(  lockstep shard head d
  lockstep shard head d --split val -n 1

Prints id, label and range of values of the first samples; draws uint8 images up to 32 x 32 in ten shades.

)";

Action declare_head(core::Flags& flags) {
  flags.note(head_help);
  auto o = std::make_shared<HeadArguments>();
  flags.word("FOLDER", o->folder);
  flags.text("--split NAME", o->split, {"train, val", "the first"});
  flags.number("-n,--samples N", o->samples, std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max(),
               "number of samples");
  flags.note(R"(
Memory: one chunk. One rank does all the work.
)");
  return {.check = {}, .run = [o](const runtime::Session& session) { return head(*o, session); }};
}

}  // namespace lockstep::training::shard
