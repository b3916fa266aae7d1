#include "data/write/pack_pass.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "data/load/pipeline.hpp"

namespace lockstep::data {
namespace {

// Encoded samples between two looks at progress and at the stop flag.
constexpr std::uint64_t encoded_batch = 64;

// So many that no reader waits long for another at the end of a chunk.
constexpr std::uint64_t pieces_per_reader = 4;

ShardRecord complete(ShardRecord record, const ShardEntry& entry) {
  record.n_samples = entry.n_samples;
  record.bytes = entry.bytes;
  std::copy_n(entry.digest.begin(), record.digest.size(), record.digest.begin());
  record.index = entry.index;
  record.index_crc = entry.index_crc;
  return record;
}

/// Samples of the source, and where they go among those that are packed together.
struct Placed {
  Run run{};
  std::uint64_t at = 0;
};

// What the output's samples [first, first + n) are, so that each place of the source is visited once.
std::vector<Placed> runs_in_source_order(const OutputSplit& output, std::uint64_t first, std::uint64_t n) {
  std::vector<Placed> placed;
  for (std::uint64_t at = 0; at < n; at += placed.back().run.n)
    placed.push_back({output.run_at(first + at, n - at), at});
  std::ranges::sort(placed, {}, [](const Placed& p) { return p.run.first; });
  return placed;
}

// Where zeros alone are no pair of ids, and no single number.
bool may_be_unwritten(const ArraySpec& x) {
  return x.n_elements() > 1 && (x.shape.size() > 1 || core::is_floating(x.dtype));
}

}  // namespace

PassResult PackPass::run(const std::vector<ShardTask>& tasks, std::size_t rank, std::size_t n_ranks) {
  static_cast<void>(job_.source.take_tally());  // of samples that were looked at before
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    n_all_ += tasks[i].place.n_samples;
    if (i % n_ranks == rank) n_mine_ += tasks[i].place.n_samples;
  }
  try {
    run_tasks(tasks, rank, n_ranks);
  } catch (...) {
    stop_.raise();
    throw;
  }
  return std::move(result_);
}

void PackPass::run_tasks(const std::vector<ShardTask>& tasks, std::size_t rank, std::size_t n_ranks) {
  for (std::size_t i = rank; i < tasks.size() && !result_.is_stopped; i += n_ranks) write_shard(tasks[i]);
}

void PackPass::write_shard(const ShardTask& task) {
  ShardRecord record{.split = task.split, .number = task.place.number};
  digests_.clear();
  std::optional<ShardWriter> writer;
  writer.emplace(job_.folder, task.place, job_.source.spec(), job_.layout);
  if (job_.source.spec().is_encoded())
    copy_encoded(task, writer, record);
  else
    copy_raw(task, writer, record);
  if (writer && !result_.is_stopped) tell_drill("sync");
  if (!writer || result_.is_stopped) return;
  result_.shards.push_back(complete(record, writer->finish()));
  result_.digests.insert(result_.digests.end(), digests_.begin(), digests_.end());
}

// The next chunk is read while one is written, if the source has readers for it. Drops the writer at the first damaged
// sample, but reads on: all of them should be known before the next pass.
void PackPass::copy_raw(const ShardTask& task, std::optional<ShardWriter>& writer, ShardRecord& record) {
  const std::uint64_t batch = job_.layout.chunk_samples;
  const std::size_t n_readers = job_.source.n_readers();
  const std::size_t n_threads = n_readers > 1 ? n_readers - 1 : 0;
  const std::uint64_t n_pieces = n_threads > 0 ? n_readers * pieces_per_reader : 1;
  std::vector<Chunk> chunks(n_threads > 0 ? 2 : 1);
  for (Chunk& chunk : chunks) chunk.bad.resize(n_pieces), chunk.tallies.resize(n_pieces);
  const auto samples_of = [&](std::uint64_t number) {
    return Run{task.place.first_id + number * batch, std::min(batch, task.place.n_samples - number * batch)};
  };
  for (Chunk& chunk : chunks) {
    chunk.x.resize(std::min(batch, task.place.n_samples) * job_.source.spec().x.bytes());
    chunk.y.resize(std::min(batch, task.place.n_samples) * job_.source.spec().y.bytes());
  }
  Pipeline reading{n_threads, chunks.size(), n_pieces, [&](const Pipeline::Piece& piece) {
                     const Run all = samples_of(piece.batch);
                     const std::uint64_t begin = all.n * piece.number / n_pieces;
                     const std::uint64_t end = all.n * (piece.number + 1) / n_pieces;
                     read_piece(task.split, all.first, {begin, end - begin}, chunks[piece.slot], piece.number);
                   }};
  reading.start(0, (task.place.n_samples + batch - 1) / batch);
  while (!result_.is_stopped) {
    const auto taken = reading.take();
    if (!taken) return;
    const Run samples = samples_of(taken->batch);
    write_chunk(chunks[taken->slot], samples, writer, record);
    advance(samples.n);
  }
}

// Samples [part.first, part.first + part.n) of the chunk whose first is the split's sample `chunk_first`.
void PackPass::read_piece(std::size_t split, std::uint64_t chunk_first, Run part, Chunk& chunk, std::uint64_t number) {
  const OutputSplit& output = plan_.splits()[split];
  const std::uint64_t x_bytes = job_.source.spec().x.bytes(), y_bytes = job_.source.spec().y.bytes();
  std::vector<BadRecord>& bad = chunk.bad[number];
  bad.clear();
  for (const auto& [run, at] : runs_in_source_order(output, chunk_first + part.first, part.n)) {
    const auto x = std::span{chunk.x}.subspan((part.first + at) * x_bytes, run.n * x_bytes);
    const auto y = std::span{chunk.y}.subspan((part.first + at) * y_bytes, run.n * y_bytes);
    read_run(output.source, run, x, y, bad);
    if (bad.empty()) check_labels(output.source, run.first, y);
  }
  chunk.tallies[number] = job_.source.take_tally();
}

void PackPass::write_chunk(Chunk& chunk, Run samples, std::optional<ShardWriter>& writer, ShardRecord& record) {
  const SetSpec& spec = job_.source.spec();
  for (const std::vector<BadRecord>& bad : chunk.bad) {
    if (!bad.empty()) writer.reset();
    result_.bad.insert(result_.bad.end(), bad.begin(), bad.end());
  }
  if (!writer) return;
  for (const Tally& tally : chunk.tallies) add(record.tally, tally);
  const std::uint64_t x_bytes = spec.x.bytes(), y_bytes = spec.y.bytes();
  const auto x = std::span{chunk.x}.first(samples.n * x_bytes);
  const auto y = std::span{chunk.y}.first(samples.n * y_bytes);
  add_values(spec.x.dtype, x, record.x);
  add_values(spec.y.dtype, y, record.y);
  for (std::uint64_t i = 0; i < samples.n; ++i)
    look_at(samples.first + i, x.subspan(i * x_bytes, x_bytes), y.subspan(i * y_bytes, y_bytes), record);
  tell_drill("write");
  writer->append(x, y);
}

void PackPass::copy_encoded(const ShardTask& task, std::optional<ShardWriter>& writer, ShardRecord& record) {
  const std::uint64_t end = task.place.first_id + task.place.n_samples;
  for (std::uint64_t position = task.place.first_id; position < end && !result_.is_stopped; position += encoded_batch) {
    const std::uint64_t n = std::min(encoded_batch, end - position);
    for (std::uint64_t i = 0; i < n; ++i) copy_encoded_sample(task.split, position + i, writer, record);
    advance(n);
  }
}

void PackPass::copy_encoded_sample(std::size_t split, std::uint64_t position, std::optional<ShardWriter>& writer,
                                   ShardRecord& record) {
  const SetSpec& spec = job_.source.spec();
  const OutputSplit& output = plan_.splits()[split];
  const Run run = output.run_at(position, 1);
  label_.resize(spec.y.bytes());
  try {
    const std::vector<std::byte> image = job_.source.read_encoded(output.source, run.first, label_);
    check_labels(output.source, run.first, label_);
    add_values(spec.y.dtype, label_, record.y);
    if (writer) look_at(position, image, label_, record);
    add(record.tally, job_.source.take_tally());
    if (writer) tell_drill("write");
    if (writer) writer->append_encoded(image, label_);
  } catch (const BadSample& bad) {
    note(output.source, run, bad, result_.bad);
    writer.reset();
  }
}

// The sample at `position` of the split, as it is stored.
void PackPass::look_at(std::uint64_t position, std::span<const std::byte> x, std::span<const std::byte> y,
                       ShardRecord& record) {
  if (job_.compared_one_in == 0) return;
  SampleDigest sample = digest_sample(x, y);
  const bool is_blank = may_be_unwritten(job_.source.spec().x) &&
                        std::ranges::all_of(x, [](std::byte value) { return value == std::byte{0}; });
  if (!is_blank && !is_compared(sample, job_.compared_one_in)) return;
  sample.index = plan_.splits()[record.split].run_at(position, 1).first;
  sample.split = static_cast<std::uint32_t>(record.split);
  sample.shard = static_cast<std::uint32_t>(record.number);
  if (is_blank) add(record.blank, {.n = 1, .first = sample.index});
  if (is_compared(sample, job_.compared_one_in)) digests_.push_back(sample);
}

void PackPass::tell_drill(std::string_view place) const {
  const int error = job_.options.drill ? job_.options.drill->write(place) : 0;
  if (error != 0) core::fail_system(fmt::format("cannot {} '{}': {}", place, job_.folder, core::system_reason(error)));
}

// After a damaged sample, reads those before it once more: a source may meet samples in any order.
void PackPass::read_run(std::size_t source_split, Run run, std::span<std::byte> x, std::span<std::byte> y,
                        std::vector<BadRecord>& found) const {
  const std::uint64_t x_bytes = job_.source.spec().x.bytes(), y_bytes = job_.source.spec().y.bytes();
  while (run.n > 0) {
    try {
      return job_.source.read(source_split, run.first, run.n, x.first(run.n * x_bytes), y.first(run.n * y_bytes));
    } catch (const BadSample& bad) {
      note(source_split, run, bad, found);
      const std::uint64_t n_before = bad.index() - run.first;
      if (n_before > 0) read_run(source_split, {run.first, n_before}, x, y, found);
      run = {bad.index() + 1, run.n - n_before - 1};
    }
  }
}

void PackPass::note(std::size_t source_split, Run run, const BadSample& bad, std::vector<BadRecord>& found) const {
  if (!job_.options.skip_bad)
    core::fail_usage({.what = bad.what(), .fix = "repair or remove it, or leave such samples out with --skip-bad"});
  core::require(bad.index() >= run.first && bad.index() - run.first < run.n,
                "a damaged sample is one that was asked for");
  found.push_back({source_split, bad.index(), bad.what()});
}

void PackPass::check_labels(std::size_t source_split, std::uint64_t first, std::span<const std::byte> y) const {
  const SetSpec& spec = job_.source.spec();
  const auto bad = find_bad_label(spec, y);
  if (!bad) return;
  core::fail_usage({.what = fmt::format("sample {} of '{}' has label {}", first + bad->sample,
                                        job_.source.splits()[source_split].name, bad->value),
                    .expected = expected_labels(spec)});
}

void PackPass::advance(std::uint64_t n) {
  n_done_ += n;
  const auto scaled = static_cast<double>(n_done_) / static_cast<double>(n_mine_) * static_cast<double>(n_all_);
  if (progress_ && !progress_(static_cast<std::uint64_t>(scaled), n_all_)) stop_.raise();
  result_.is_stopped = stop_.is_raised();
}

}  // namespace lockstep::data
