#include "data/write/pack_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.hpp"

namespace lockstep::data {
namespace {

// Streams of the keyed permutations: no two uses of one seed may share their random numbers.
constexpr std::uint64_t val_stream = 0x76616c;
constexpr std::uint64_t shuffle_stream = 0x73687566;

void check_names(const std::vector<SourceSplit>& splits) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  std::set<std::string_view> names;
  for (const SourceSplit& split : splits) {
    const bool is_plain = !split.name.empty() && split.name.find_first_not_of(letters) == std::string::npos;
    if (!is_plain || !names.insert(split.name).second)
      core::fail_usage({.what = fmt::format("'{}' cannot be the name of a split", split.name),
                        .expected = "letters, digits, '_' and '-', each name once"});
  }
}

// Before anything is allocated that grows with the samples. A manifest of more shards would be above 1 GiB.
void check_n_shards(const std::vector<SourceSplit>& splits, std::uint64_t shard_samples) {
  constexpr std::uint64_t most_shards = std::uint64_t{1} << 22;
  std::uint64_t n_shards = 0;
  for (const SourceSplit& split : splits) n_shards += split.n_samples / shard_samples;
  if (n_shards <= most_shards) return;
  core::fail_usage({.what = fmt::format("{} shards of {} samples", n_shards, shard_samples),
                    .where = "--shard-size",
                    .expected = fmt::format("at most {} shards in a set", most_shards),
                    .fix = "use larger shards, or several sets"});
}

std::uint64_t n_val_samples(const std::vector<SourceSplit>& splits, double share) {
  const std::string where = "--val";
  if (!(share > 0 && share < 1))
    core::fail_usage(
        {.what = fmt::format("{} is not a share of the samples", share), .where = where, .expected = "0 < share < 1"});
  if (splits.size() != 1)
    core::fail_usage({.what = fmt::format("the source has {} splits of its own", splits.size()),
                      .where = where,
                      .expected = "a source with a single split",
                      .fix = "leave out --val"});
  const std::uint64_t n = splits.front().n_samples;
  const auto n_val = static_cast<std::uint64_t>(std::llround(share * static_cast<double>(n)));
  if (n_val == 0 || n_val >= n)
    core::fail_usage({.what = fmt::format("{} of {} samples leaves one split empty", share, n), .where = where});
  return n_val;
}

// Train and val.
std::vector<OutputSplit> divide(const std::vector<SourceSplit>& splits, double share, std::uint64_t seed) {
  const std::uint64_t n_val = n_val_samples(splits, share);
  const std::uint64_t n = splits.front().n_samples;
  std::vector<std::uint64_t> train(n / 64 + 1, ~std::uint64_t{0}), val(train.size(), 0);
  train.back() = (std::uint64_t{1} << (n % 64)) - 1;
  const KeyedPermutation permutation{n, seed, val_stream};
  for (std::uint64_t i = 0; i < n_val; ++i) {
    const std::uint64_t sample = permutation.at(i);
    const std::uint64_t bit = std::uint64_t{1} << (sample % 64);
    train[sample / 64] &= ~bit;
    val[sample / 64] |= bit;
  }
  return {{.name = "train", .source = 0, .selection = Selection{n, std::move(train)}},
          {.name = "val", .source = 0, .selection = Selection{n, std::move(val)}}};
}

std::vector<std::uint64_t> indices_of(const std::vector<BadRecord>& bad, std::size_t split) {
  std::vector<std::uint64_t> indices;
  for (const BadRecord& record : bad)
    if (record.split == split) indices.push_back(record.index);
  return indices;
}

// The first position of `split` where another sample stands once those of `bad` are left out.
std::uint64_t first_change(const OutputSplit& split, const std::vector<BadRecord>& bad) {
  std::uint64_t first = UINT64_MAX;
  for (const std::uint64_t index : indices_of(bad, split.source))
    if (split.selection.has(index)) first = std::min(first, split.order ? 0 : split.selection.position_of(index));
  return first;
}

}  // namespace

PackPlan::PackPlan(const std::vector<SourceSplit>& splits, const PackOptions& options, std::uint64_t shard_samples,
                   const std::vector<BadRecord>& bad)
    : shard_samples_{shard_samples} {
  check_names(splits);
  check_n_shards(splits, shard_samples);
  if (options.val != 0)
    splits_ = divide(splits, options.val, options.seed);
  else
    for (std::size_t i = 0; i < splits.size(); ++i)
      splits_.push_back({.name = splits[i].name, .source = i, .selection = Selection{splits[i].n_samples}});
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    OutputSplit& split = splits_[i];
    split.selection.remove(indices_of(bad, split.source));
    if (options.shuffle && split.selection.n() > 0)
      split.order.emplace(split.selection.n(), options.seed, shuffle_stream + (i << 32));
  }
}

std::uint64_t PackPlan::shard_end(std::size_t split, std::uint64_t first) const noexcept {
  return std::min(first + shard_samples_, splits_[split].selection.n());
}

std::vector<ShardTask> PackPlan::tasks() const {
  std::vector<ShardTask> tasks;
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    std::uint64_t number = 0;
    for (std::uint64_t first = 0; first < splits_[i].selection.n(); first += shard_samples_)
      tasks.push_back({i, {splits_[i].name, number++, first, shard_end(i, first) - first}});
  }
  return tasks;
}

std::vector<ShardTask> PackPlan::tasks_since(const PackPlan& before, const std::vector<BadRecord>& bad) const {
  std::vector<std::uint64_t> changes;
  for (const OutputSplit& split : before.splits_) changes.push_back(first_change(split, bad));
  std::vector<ShardTask> changed = tasks();
  std::erase_if(changed, [&](const ShardTask& task) {
    const std::uint64_t end = task.place.first_id + task.place.n_samples;
    return end <= changes[task.split] && end == before.shard_end(task.split, task.place.first_id);
  });
  return changed;
}

}  // namespace lockstep::data
