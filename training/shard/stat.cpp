// lockstep shard stat: splits, shapes, classes and sizes of a set.

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/print.hpp"
#include "core/printable.hpp"
#include "core/table.hpp"
#include "training/shard/class_counts.hpp"
#include "training/shard/verbs.hpp"

namespace lockstep::training::shard {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order written here

struct StatArguments {
  std::string folder;
  bool json = false;
};

struct SplitFacts {
  const data::Split* split = nullptr;
  core::Bytes bytes{};
  std::optional<double> ratio{};  ///< decoded over stored; nothing for encoded samples
};

SplitFacts describe(const data::Split& split, const data::SetSpec& spec) {
  SplitFacts facts{.split = &split, .bytes = split.stored_bytes()};
  const std::uint64_t decoded = split.n_samples * (spec.x.bytes() + spec.y.bytes() + sizeof(std::uint64_t));
  if (!spec.is_encoded() && facts.bytes.value > 0)
    facts.ratio = static_cast<double>(decoded) / static_cast<double>(facts.bytes.value);
  return facts;
}

std::string describe_chunk(const data::Manifest& manifest) {
  if (manifest.chunk_samples == 0) return "4 MiB of image files";
  return fmt::format("{} samples, {} of x", manifest.chunk_samples,
                     core::format_bytes({manifest.chunk_samples * manifest.spec.x.bytes()}));
}

void print_head(const std::string& folder, const data::Manifest& manifest) {
  const data::SetSpec& spec = manifest.spec;
  core::print("{}\n", folder);
  core::print("  x            {}\n", spec.is_encoded() ? "image files, decoded when loaded" : describe(spec.x));
  core::print("  y            {}\n", describe(spec.y));
  core::print("  classes      {}\n", spec.classes.empty() ? "none" : std::to_string(spec.classes.size()));
  core::print("  compression  {}\n", io::name(manifest.filter));
  core::print("  chunk        {}\n", describe_chunk(manifest));
  for (const data::ExtraEntry& extra : manifest.extras)
    core::print("  extra file   {} ({})\n", extra.file, core::format_bytes({extra.bytes}));
  for (const std::string& note : manifest.notes) core::print("  {}\n", core::printable(note));
  core::print("\n");
}

void print_splits(const data::Manifest& manifest) {
  const core::Table table{{{.header = "split", .unit = "", .width = 8, .align = core::Align::left},
                           {.header = "samples", .unit = "", .width = 12},
                           {.header = "shards", .unit = "", .width = 8},
                           {.header = "stored", .unit = "MB", .width = 12},
                           {.header = "ratio", .unit = "", .width = 8}},
                          "  "};
  core::print(table.header());
  for (const data::Split& split : manifest.splits) {
    const SplitFacts facts = describe(split, manifest.spec);
    core::print(
        table.row({core::printable(split.name), std::to_string(split.n_samples), std::to_string(split.shards.size()),
                   fmt::format("{:.3f}", static_cast<double>(facts.bytes.value) * 1e-6),
                   facts.ratio ? fmt::format("{:.2f}", *facts.ratio) : "-"}));
  }
}

// Prints a column per split and a row per class.
void print_classes(const data::Manifest& manifest, const std::vector<ClassCounts>& counts) {
  std::vector<core::Column> columns{{.header = "class", .unit = "", .width = 5},
                                    {.header = "name", .unit = "", .width = 20, .align = core::Align::left}};
  for (const data::Split& split : manifest.splits) columns.push_back({.header = split.name, .unit = "", .width = 10});
  const core::Table table{columns, "  "};
  core::print("\n{}", table.header());
  for (std::size_t label = 0; label < manifest.spec.classes.size(); ++label) {
    std::vector<std::string> cells{std::to_string(label), core::printable(manifest.spec.classes[label])};
    for (const ClassCounts& of_split : counts) cells.push_back(std::to_string(of_split.by_class[label]));
    core::print(table.row(cells));
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].n_out_of_range > 0)
      core::print("  {} labels of {} are outside the classes\n", counts[i].n_out_of_range, manifest.splits[i].name);
  }
}

Json to_json(const data::ArraySpec& array) { return {{"dtype", core::name(array.dtype)}, {"shape", array.shape}}; }

Json to_json(const data::Split& split, const data::SetSpec& spec, const ClassCounts* counts) {
  const SplitFacts facts = describe(split, spec);
  Json json{{"name", split.name},
            {"samples", split.n_samples},
            {"shards", split.shards.size()},
            {"bytes", facts.bytes.value},
            {"ratio", facts.ratio ? Json(*facts.ratio) : Json()}};
  if (counts != nullptr) {
    json["samples_by_class"] = counts->by_class;
    json["labels_out_of_range"] = counts->n_out_of_range;
  }
  return json;
}

void print_json(const data::Manifest& manifest, const std::vector<ClassCounts>& counts) {
  Json splits = Json::array();
  for (std::size_t i = 0; i < manifest.splits.size(); ++i)
    splits.push_back(to_json(manifest.splits[i], manifest.spec, counts.empty() ? nullptr : &counts[i]));
  const Json json{{"schema", "lockstep.shard_stat"},
                  {"schema_version", 1},
                  {"x", to_json(manifest.spec.x)},
                  {"y", to_json(manifest.spec.y)},
                  {"encoding", manifest.spec.encoding},
                  {"classes", manifest.spec.classes},
                  {"compression", io::name(manifest.filter)},
                  {"chunk_samples", manifest.chunk_samples},
                  {"notes", manifest.notes},
                  {"splits", splits}};
  core::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_tables(const std::string& folder, const data::Manifest& manifest, const std::vector<ClassCounts>& counts) {
  print_head(folder, manifest);
  print_splits(manifest);
  if (!counts.empty()) print_classes(manifest, counts);
}

int stat(const StatArguments& o, const runtime::Session& session) {
  const runtime::Communicator& world = session.world();
  data::Manifest manifest;
  std::vector<ClassCounts> counts;
  const auto complaint = core::complaint_of([&] {
    manifest = data::read_manifest(o.folder);
    if (manifest.spec.classes.empty()) return;
    for (const data::Split& split : manifest.splits)
      counts.push_back(count_classes(o.folder, manifest, split.name, world.rank(), world.n_ranks()));
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  for (ClassCounts& of_split : counts) of_split = sum(world, of_split);
  const auto unprinted = core::complaint_of([&] {
    if (world.rank() == 0) o.json ? print_json(manifest, counts) : print_tables(o.folder, manifest, counts);
  });
  return core::to_int(session.agree(unprinted).value_or(core::ExitCode::ok));
}

}  // namespace

constexpr std::string_view stat_help = R"(  lockstep shard stat d
  lockstep shard stat d --json > d.json

Prints types, shapes, splits, sizes, and the number of samples of each class. `ratio` is the size of the samples divided
by that of the files. Reads the manifest and, if there are classes, all labels; to check the other data, use verify.

)";

Action declare_stat(core::Flags& flags) {
  flags.note(stat_help);
  auto o = std::make_shared<StatArguments>();
  flags.word("FOLDER", o->folder);
  flags.toggle("--json", o->json, "print JSON to stdout (share/lockstep/schemas/shard_stat-1.schema.json)");
  flags.note(R"(
Memory: one chunk of labels per rank.
)");
  return {.check = {}, .run = [o](const runtime::Session& session) { return stat(*o, session); }};
}

}  // namespace lockstep::training::shard
