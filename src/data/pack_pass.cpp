#include "data/pack_pass.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "data/values.hpp"

namespace lockstep::data {
namespace {

// Encoded samples between two looks at progress and at the stop flag.
constexpr std::uint64_t encoded_batch = 64;

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

}  // namespace

PassResult PackPass::run(const std::vector<ShardTask>& tasks, std::size_t rank, std::size_t n_ranks) {
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
  std::optional<ShardWriter> writer;
  writer.emplace(job_.folder, task.place, job_.source.spec(), job_.layout);
  copy_samples(task, writer, record);
  if (writer && !result_.is_stopped) result_.shards.push_back(complete(record, writer->finish()));
}

// Drops the writer at the first damaged sample, but reads on: all of them should be known before the next pass.
void PackPass::copy_samples(const ShardTask& task, std::optional<ShardWriter>& writer, ShardRecord& record) {
  const bool is_encoded = job_.source.spec().is_encoded();
  const std::uint64_t batch = is_encoded ? encoded_batch : job_.layout.chunk_samples;
  const std::uint64_t end = task.place.first_id + task.place.n_samples;
  for (std::uint64_t position = task.place.first_id; position < end && !result_.is_stopped; position += batch) {
    const std::uint64_t n = std::min(batch, end - position);
    if (!is_encoded) copy_raw(task.split, position, n, writer, record);
    for (std::uint64_t i = 0; is_encoded && i < n; ++i) copy_encoded(task.split, position + i, writer, record);
    advance(n);
  }
}

void PackPass::copy_raw(std::size_t split, std::uint64_t first, std::uint64_t n, std::optional<ShardWriter>& writer,
                        ShardRecord& record) {
  const SetSpec& spec = job_.source.spec();
  const OutputSplit& output = plan_.splits()[split];
  const std::uint64_t x_bytes = spec.x.bytes(), y_bytes = spec.y.bytes();
  x_.resize(n * x_bytes);
  y_.resize(n * y_bytes);
  const std::size_t n_bad = result_.bad.size();
  for (const auto& [run, at] : runs_in_source_order(output, first, n)) {
    const auto x = std::span{x_}.subspan(at * x_bytes, run.n * x_bytes);
    const auto y = std::span{y_}.subspan(at * y_bytes, run.n * y_bytes);
    read_run(output.source, run, x, y);
    if (result_.bad.size() == n_bad) check_labels(output.source, run.first, y);
  }
  if (result_.bad.size() != n_bad) writer.reset();
  if (!writer) return;
  record.n_nan_x += count_nan(spec.x.dtype, x_);
  record.n_nan_y += count_nan(spec.y.dtype, y_);
  writer->append(x_, y_);
}

void PackPass::copy_encoded(std::size_t split, std::uint64_t position, std::optional<ShardWriter>& writer,
                            ShardRecord& record) {
  const SetSpec& spec = job_.source.spec();
  const OutputSplit& output = plan_.splits()[split];
  const Run run = output.run_at(position, 1);
  y_.resize(spec.y.bytes());
  try {
    const std::vector<std::byte> image = job_.source.read_encoded(output.source, run.first, y_);
    check_labels(output.source, run.first, y_);
    record.n_nan_y += count_nan(spec.y.dtype, y_);
    if (writer) writer->append_encoded(image, y_);
  } catch (const BadSample& bad) {
    note(output.source, run, bad);
    writer.reset();
  }
}

// After a damaged sample, reads those before it once more: a source may meet samples in any order.
void PackPass::read_run(std::size_t source_split, Run run, std::span<std::byte> x, std::span<std::byte> y) {
  const std::uint64_t x_bytes = job_.source.spec().x.bytes(), y_bytes = job_.source.spec().y.bytes();
  while (run.n > 0) {
    try {
      return job_.source.read(source_split, run.first, run.n, x.first(run.n * x_bytes), y.first(run.n * y_bytes));
    } catch (const BadSample& bad) {
      note(source_split, run, bad);
      const std::uint64_t n_before = bad.index() - run.first;
      if (n_before > 0) read_run(source_split, {run.first, n_before}, x, y);
      run = {bad.index() + 1, run.n - n_before - 1};
    }
  }
}

void PackPass::note(std::size_t source_split, Run run, const BadSample& bad) {
  if (!job_.options.skip_bad)
    core::fail_usage({.what = bad.what(), .fix = "repair or remove it, or leave such samples out with --skip-bad"});
  core::require(bad.index() >= run.first && bad.index() - run.first < run.n,
                "a damaged sample is one that was asked for");
  result_.bad.push_back({source_split, bad.index(), bad.what()});
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
