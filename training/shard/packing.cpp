#include "training/shard/packing.hpp"

#include <algorithm>
#include <limits>

#include "core/log.hpp"
#include "core/print.hpp"
#include "core/printable.hpp"
#include "core/result_path.hpp"
#include "core/timer.hpp"
#include "runtime/interrupt.hpp"
#include "training/command.hpp"
#include "training/progress.hpp"

namespace lockstep::training::shard {
namespace {

constexpr std::size_t most_shown = 10;  // skipped samples named one by one

int highest_level(io::Filter filter) {
  switch (filter) {
    case io::Filter::deflate: return 9;
    case io::Filter::zstd: return 22;
    case io::Filter::lz4: return 12;
    case io::Filter::none: break;
  }
  return 0;
}

void check_level(const data::PackOptions& options) {
  const int highest = highest_level(options.filter);
  if (highest == 0)
    core::fail_usage({.what = "a level without compression",
                      .where = "--level",
                      .expected = "--compress deflate, zstd or lz4 with it",
                      .fix = "add --compress zstd"});
  if (options.level > highest)
    core::fail_usage({.what = fmt::format("{} has no level {}", io::name(options.filter), options.level),
                      .where = "--level",
                      .expected = fmt::format("1 to {}", highest),
                      .fix = ""});
}

std::string describe_splits(const data::Manifest& manifest) {
  std::string text;
  for (const data::Split& split : manifest.splits)
    text += fmt::format("{}{} {} in {} shard{}", text.empty() ? "" : ", ", split.name, split.n_samples,
                        split.shards.size(), split.shards.size() == 1 ? "" : "s");
  return text;
}

core::Bytes stored_bytes(const data::Manifest& manifest) {
  core::Bytes sum;
  for (const data::Split& split : manifest.splits) sum.value += split.stored_bytes().value;
  return sum;
}

void print_skipped(const std::vector<std::string>& bad) {
  if (bad.empty()) return;
  core::log_warning(fmt::format("skipped {} bad sample{}:", bad.size(), bad.size() == 1 ? "" : "s"));
  for (std::size_t i = 0; i < std::min(bad.size(), most_shown); ++i) core::log_warning("  " + core::printable(bad[i]));
  if (bad.size() > most_shown) core::log_warning(fmt::format("  and {} more", bad.size() - most_shown));
}

// Prints remarks about the new set: the same lines as in its manifest.
void print_remarks(const std::vector<data::Remark>& remarks) {
  if (remarks.empty()) return;
  core::print("Notes (also in {}):\n", data::manifest_name);
  for (const data::Remark& remark : remarks) core::print("  {}\n", data::line_of(remark));
}

void print_result(const data::PackResult& result, const data::PackOptions& options, core::Seconds time) {
  const core::Bytes bytes = stored_bytes(result.manifest);
  print_skipped(result.bad);
  core::print("Wrote {}: {}; {} in {} ({} MB/s).\n", options.out, describe_splits(result.manifest),
              core::format_decimal(bytes), core::format_seconds(time),
              core::format_number(core::gigabytes_per_second(bytes, time) * 1e3));
  print_remarks(result.remarks);
}

}  // namespace

void declare_packing(core::Flags& flags, data::PackOptions& o) {
  o.drill = std::make_shared<runtime::Drill>();
  flags.heading("The new folder");
  flags.text("--out FOLDER", o.out, {"new folder; appears when it is complete", "required"});
  flags.toggle("--force", o.replace, {"replace FOLDER if it exists", "refuse"});
  flags.bytes("--shard-size S", o.shard_bytes, "size of a file before compression: 64M, 1G; powers of 1024");
  flags.bytes("--chunk-size S", o.chunk_bytes, "size of the parts that are read and decompressed at once");
  flags.choice("--compress C", "compression", o.filter, io::all_filters,
               "none, deflate, zstd or lz4; other programs need HDF5 plugins for the last two");
  flags.number("--level N", o.level, 1, 22, {"1 to 9 for deflate, 22 for zstd, 12 for lz4", "the codec's default"});
  flags.toggle("--shuffle", o.shuffle, "store in a random order; for data sorted by class");
  flags.number("--seed N", o.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
               "seed of everything random");
  flags.value("--inject FAULT,...",
              "fire drill: cause these faults; N: at the Nth time, or `each` (default: the first). A rank ...",
              [&o](const std::string& text) { o.drill->add(text, runtime::FaultTaker::shard); });
  flags.note(runtime::fault_help(runtime::FaultTaker::shard));
}

void declare_val(core::Flags& flags, data::PackOptions& options, const core::Help& help) {
  flags.value("--val SHARE", help, [&options](const std::string& text) {
    constexpr const char* expected = "a share above 0 and below 1, such as 0.2";
    options.val = core::parse_number(text, "--val", 0.0, 1.0, expected);
    if (options.val == 0 || options.val == 1)
      core::fail_usage({.what = fmt::format("a share of {} leaves one of the splits empty", text),
                        .where = "--val",
                        .expected = expected,
                        .fix = ""});
  });
}

void check_packing(const core::Flags& flags, const data::PackOptions& options, bool keeps_filter) {
  flags.require("--out", "FOLDER, the new folder");
  core::refuse_in_shard_set(options.out, "--out");
  if (flags.has("--inject") && options.replace)
    core::fail_usage({.what = "faults are injected only when a new set is made",
                      .where = "--inject, --force",
                      .expected = "one of the two",
                      .fix = "leave out --force and name a new folder"});
  if (flags.has("--level") && !(keeps_filter && !flags.has("--compress"))) check_level(options);
  if (options.chunk_bytes.value == 0 || options.chunk_bytes > options.shard_bytes)
    core::fail_usage(
        {.what = fmt::format("chunks of {} do not fit into shards of {}", core::format_bytes(options.chunk_bytes),
                             core::format_bytes(options.shard_bytes)),
         .where = "--chunk-size, --shard-size",
         .expected = "chunks of 1 B or more, not above the shard size",
         .fix = "use sizes such as --chunk-size 4M --shard-size 256M"});
}

int end_stopped(const runtime::Communicator& world) {
  const int signal = runtime::agree_on_interrupt(world);
  if (world.rank() == 0)
    core::log_warning(fmt::format("stopped by {}: nothing was written", runtime::describe_signal(signal)));
  return 128 + signal;
}

int pack_and_report(const runtime::Session& session, data::Source& source, const data::PackOptions& options) {
  const runtime::Communicator& world = session.world();
  const core::Stopwatch watch;
  data::PackResult result;
  const auto complaint = core::complaint_of([&] {
    Progress progress{"packing", ProgressUnit::samples, world.rank() == 0};
    result = data::pack(source, options, world, [&progress](std::uint64_t n_done, std::uint64_t n_samples) {
      return progress.update(n_done, n_samples);
    });
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  if (runtime::broadcast_value(world, result.is_stopped)) return end_stopped(world);
  const auto unprinted = core::complaint_of([&] {
    if (world.rank() == 0) print_result(result, options, watch.elapsed());
  });
  return core::to_int(session.agree(unprinted).value_or(core::ExitCode::ok));
}

}  // namespace lockstep::training::shard
