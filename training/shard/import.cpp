// lockstep shard import: a set from files of other formats.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "data/image/image.hpp"
#include "data/importers/importers.hpp"
#include "data/importers/input.hpp"
#include "runtime/topology.hpp"
#include "training/shard/misplaced.hpp"
#include "training/shard/packing.hpp"
#include "training/shard/verbs.hpp"

namespace lockstep::training::shard {
namespace {

struct ImportArguments {
  std::string kind;
  std::vector<std::string> paths{};
  data::ImportOptions import{};
  data::PackOptions pack{};
  bool no_header = false;
};

constexpr std::array<FlagUse, 15> import_flags{{{"--skip-bad", "images"},
                                                {"--resize", "images"},
                                                {"--crop", "images"},
                                                {"--keep-encoded", "images"},
                                                {"--gray", "images"},
                                                {"--keep-orientation", "images"},
                                                {"--white", "images"},
                                                {"--x-columns", "csv"},
                                                {"--y-column", "csv"},
                                                {"--no-header", "csv"},
                                                {"--no-classes", "csv hdf5 npy"},
                                                {"--x-name", "hdf5 npy"},
                                                {"--y-name", "hdf5 npy"},
                                                {"--allow-external-files", "hdf5"},
                                                {"--allow-unwritten", "hdf5"}}};

void check_paths(ImportArguments& o) {
  const std::size_t most = o.kind == "npy" ? 2 : 1;
  if (o.paths.size() > most)
    core::fail_usage({.what = fmt::format("unexpected argument '{}'", o.paths[most]),
                      .where = "lockstep shard import " + o.kind,
                      .expected = most == 2 ? "a path, or a file of inputs and one of labels" : "one path",
                      .fix = fmt::format("lockstep shard import {} --help explains it", o.kind)});
  if (o.paths.size() == 2) o.import.y_path = o.paths[1];
}

void check(const core::Flags& flags, ImportArguments& o) {
  static_cast<void>(core::find_named(data::importers, o.kind, "importer", "lockstep shard import"));
  refuse_misplaced(flags, import_flags, o.kind);
  check_packing(flags, o.pack);
  o.import.has_header = !o.no_header;
  if (o.import.keep_encoded &&
      (o.import.resize > 0 || o.import.crop > 0 || o.import.gray || o.import.keep_orientation || o.import.white > 0))
    core::fail_usage({.what = "images that are kept as files cannot be changed",
                      .where = "--keep-encoded",
                      .expected = "no --resize, --crop, --gray, --keep-orientation or --white with it",
                      .fix = "leave out --keep-encoded, or the others: --augment can resize when loading"});
  check_paths(o);
}

/// The result of opening a source on all ranks.
struct Opening {
  std::unique_ptr<data::Source> source{};
  std::optional<int> exit_code{};  ///< set: there is no source, and the program must end with this code
};

// Collective: ranks that are not `mine` only take part in the agreement.
void open_source(const ImportArguments& o, const data::ImportOptions& options, const runtime::Session& session,
                 bool mine, Opening& opening) {
  const data::Importer& importer = core::find_named(data::importers, o.kind, "importer", "lockstep shard import");
  bool is_stopped = false;
  const auto complaint = core::complaint_of([&] {
    try {
      if (mine) opening.source = importer.open(o.paths.front(), options);
    } catch (const data::Interrupted&) {
      is_stopped = true;
    }
  });
  if (const auto bad = session.agree(complaint))
    opening.exit_code = core::to_int(*bad);
  else if (session.world().any(is_stopped))
    opening.exit_code = end_stopped(session.world());
}

// Collective: the first rank of each node unpacks and parses; the others open the spools that it has made.
void open_shared(const ImportArguments& o, data::ImportOptions options, const runtime::Session& session,
                 Opening& opening) {
  const auto own_node = session.world().split_shared();
  const runtime::Communicator& node = *own_node;
  data::SharedSpools spools;
  options.spools = &spools;
  open_source(o, options, session, node.rank() == 0, opening);
  if (opening.exit_code) return;
  const std::string offered = node.broadcast(spools.offer());
  if (node.rank() != 0) spools = data::SharedSpools{offered};
  open_source(o, options, session, node.rank() != 0, opening);
}

int import(const ImportArguments& o, const runtime::Session& session) {
  data::ImportOptions options = o.import;
  options.n_threads = 1 + runtime::spare_cores(session.world());
  Opening opening;
  if (core::find_named(data::importers, o.kind, "importer", "lockstep shard import").has_spools)
    open_shared(o, options, session, opening);
  else
    open_source(o, options, session, true, opening);
  return opening.exit_code ? *opening.exit_code : pack_and_report(session, *opening.source, o.pack);
}

constexpr std::string_view labels_help = R"(
Labels of csv, hdf5 and npy: if all are whole numbers from 0 to 65535, they become classes, and a line says so. Whole
means an integer type, or in a csv file, a number without a decimal point. For targets of a regression, use
--no-classes. Labels that are words (in a csv file: if the first is not a number) also become classes, numbered in the
order of the words.
lockstep train learns classes of images, and numbers (--no-classes) of tables; it has no model for classes of tables.
)";

constexpr std::string_view import_notes = R"(
Memory: three chunks (of images on several threads, four) and one shard's check sums per rank (some 20 MB by default).
Besides, images need 8 bytes and the name of each file; movielens some 50 bytes for each user and item while it reads
them, and 8 later; hdf5 one of the file's chunks of x and y, at most 256 MiB each. The first rank needs some 100 bytes
for each sample that is compared with the others, at most two million. If the input is text or compressed
(csv, .gz, .npz), each node has a temporary file of the decompressed size in the temporary folder (TMPDIR).

An HDF5 file may name other files with its content: external storage, external links, virtual data sets. They are read
only with --allow-external-files, because the author of the file chose them, and their content goes into the shards.
)";

std::string import_help() {
  std::string text = R"(  lockstep shard import mnist downloads/mnist --out m
  lockstep shard import images photos --out p --resize 256 --crop 224 --val 0.1 --shuffle --nproc 4
  lockstep shard import hdf5 old.h5 --out n --x-name images --y-name labels --compress zstd
  lockstep shard import images --help                    what an importer reads, and its flags

Kinds
)";
  for (const data::Importer& importer : data::importers)
    text += fmt::format("  {:<10} {}\n", importer.name, importer.summary);
  return text + '\n';
}

}  // namespace

std::string narrow_import_help(std::string_view kind, core::Flags& flags) {
  const data::Importer& importer = core::find_named(data::importers, kind, "importer", "lockstep shard import");
  for (const FlagUse& use : import_flags) {
    if (is_for(use, kind)) continue;
    flags.hide(use.flag);
    if (use.flag == "--no-classes") flags.hide("labels");
  }
  flags.hide("all kinds");
  return fmt::format("{}: {}\n\nPATH\n{}\n", importer.name, importer.summary, importer.layouts);
}

Action declare_import(core::Flags& flags) {
  flags.note(import_help(), "all kinds");
  auto o = std::make_shared<ImportArguments>();
  flags.word("KIND", o->kind);
  flags.words("KIND or PATH", o->paths, 1);
  constexpr std::uint64_t largest_side = 65536;
  flags.heading("What to read");
  flags.toggle("--skip-bad", o->pack.skip_bad,
               {"images: leave out damaged ones, name and count them", "stop at the first"});
  flags.number("--resize N", o->import.resize, std::uint64_t{1}, largest_side,
               {"images: scale the shorter side to N", "all must have one size"});
  flags.number("--crop N", o->import.crop, std::uint64_t{1}, largest_side,
               {"images: take the N x N centre, after --resize", "whole images"});
  flags.toggle("--gray", o->import.gray, {"images: one channel", "three"});
  flags.toggle("--keep-orientation", o->import.keep_orientation,
               {"images: keep pixels as stored", "rotate upright, by EXIF"});
  flags.number("--white N", o->import.white, std::uint32_t{1}, data::white_of_16_bits,
               {"images of 16 bits: the value that becomes 255", "65535, if values use it"});
  flags.toggle("--keep-encoded", o->import.keep_encoded,
               {"images: store the files' bytes, decode them when loaded", "store pixels"});
  flags.text("--x-columns LIST", o->import.x_columns,
             {"csv: input columns, 0-7,9 or '#0-#7' or names", "all except y"});
  flags.text("--y-column COLUMN", o->import.y_column, {"csv: label column, number, '#3' or name", "the last"});
  flags.toggle("--no-header", o->no_header, {"csv: the first line is data", "it has the names"});
  flags.text("--x-name NAME", o->import.x_name, {"hdf5, npy: name of the inputs", "x"});
  flags.text("--y-name NAME", o->import.y_name, {"hdf5, npy: name of the labels", "y"});
  flags.toggle("--allow-external-files", o->import.allow_external_files,
               {"hdf5: read other files that the file names", "refuse"});
  flags.toggle("--allow-unwritten", o->import.allow_unwritten,
               {"hdf5: use the fill value for values that were never written", "refuse"});
  flags.toggle("--no-classes", o->import.no_classes,
               {"csv, hdf5, npy: keep whole-number labels as numbers", "0 to 65535: classes"});
  declare_val(flags, o->pack, {val_of_input, "none"});
  declare_packing(flags, o->pack);
  o->pack.compares = true;
  flags.note(labels_help, "labels");
  flags.note(import_notes, "all kinds");
  return {.check = [o, &flags] { check(flags, *o); },
          .run = [o](const runtime::Session& session) { return import(*o, session); },
          .drill = o->pack.drill};
}

}  // namespace lockstep::training::shard
