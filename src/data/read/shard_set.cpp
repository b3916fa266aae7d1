#include "data/read/shard_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <list>
#include <mutex>
#include <unordered_map>

#include "core/error.hpp"
#include "data/format/damaged.hpp"
#include "data/format/little_endian.hpp"

namespace lockstep::data {
namespace {

/// The open shards, most recently used first.
class OpenShards {
 public:
  using Reader = std::shared_ptr<const ShardReader>;

  explicit OpenShards(std::size_t most) : most_{std::max<std::size_t>(most, 1)} {}

  Reader find(std::size_t shard) {
    const std::lock_guard lock{mutex_};
    const auto place = places_.find(shard);
    if (place == places_.end()) return nullptr;
    order_.splice(order_.begin(), order_, place->second);
    return place->second->second;
  }

  /// If another thread was faster, keeps and returns its reader.
  Reader insert(std::size_t shard, Reader reader) {
    const std::lock_guard lock{mutex_};
    const auto [place, is_new] = places_.try_emplace(shard);
    if (!is_new) return place->second->second;
    order_.emplace_front(shard, std::move(reader));
    place->second = order_.begin();
    if (order_.size() > most_) {
      places_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::list<std::pair<std::size_t, Reader>> order_;
  std::unordered_map<std::size_t, std::list<std::pair<std::size_t, Reader>>::iterator> places_;
};

std::vector<std::uint64_t> starts_of(const Split& split) {
  std::vector<std::uint64_t> starts{0};
  starts.reserve(split.shards.size() + 1);
  for (const ShardEntry& shard : split.shards) starts.push_back(starts.back() + shard.n_samples);
  return starts;
}

}  // namespace

struct ShardSet::State {
  State(std::string the_folder, Manifest the_manifest, std::string_view name, std::size_t max_open)
      : folder{std::move(the_folder)},
        manifest{std::move(the_manifest)},
        split{manifest.split(name, folder)},
        starts{starts_of(split)},
        open{max_open} {}

  std::string folder;
  Manifest manifest;
  const Split& split;
  std::vector<std::uint64_t> starts;  ///< by shard, followed by the number of samples
  ReadCounters counters;
  OpenShards open;
};

ShardSet::ShardSet(const std::string& folder, std::string_view split, std::size_t max_open)
    : ShardSet{folder, read_manifest(folder), split, max_open} {}

ShardSet::ShardSet(const std::string& folder, Manifest manifest, std::string_view split, std::size_t max_open)
    : state_{std::make_unique<State>(folder, std::move(manifest), split, max_open)} {}

ShardSet::~ShardSet() = default;

const std::string& ShardSet::folder() const noexcept { return state_->folder; }
const Manifest& ShardSet::manifest() const noexcept { return state_->manifest; }
const SetSpec& ShardSet::spec() const noexcept { return state_->manifest.spec; }
std::uint64_t ShardSet::n_samples() const noexcept { return state_->starts.back(); }
std::size_t ShardSet::n_shards() const noexcept { return state_->split.shards.size(); }
std::uint64_t ShardSet::first_of(std::size_t shard) const noexcept { return state_->starts[shard]; }
ReadCounters& ShardSet::counters() const noexcept { return state_->counters; }

std::size_t ShardSet::shard_of(std::uint64_t sample) const noexcept {
  const auto& starts = state_->starts;
  return static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), sample) - starts.begin()) - 1;
}

std::shared_ptr<const ShardReader> ShardSet::open(std::size_t shard) const {
  if (auto reader = state_->open.find(shard)) return reader;
  const ShardEntry& entry = state_->split.shards[shard];
  auto reader = std::make_shared<const ShardReader>(folder(), entry, spec(), counters());
  if (reader->index().first_id != first_of(shard))
    fail_damaged(fmt::format("begins with id {}, expected {}", reader->index().first_id, first_of(shard)),
                 reader->file().path());
  return state_->open.insert(shard, std::move(reader));
}

void ShardSet::read(std::uint64_t first, std::uint64_t n, std::span<std::byte> x, std::span<std::byte> y) const {
  core::require(!spec().is_encoded(), "read() is for sets that are not encoded");
  core::require(first <= n_samples() && n <= n_samples() - first, "the samples to read are in the set");
  const std::uint64_t x_bytes = spec().x.bytes(), y_bytes = spec().y.bytes();
  core::require(x.size() == n * x_bytes && y.size() == n * y_bytes, "the outputs have the size of the samples");
  for (std::size_t shard = shard_of(first); n > 0; ++shard) {
    const std::uint64_t n_here = std::min(n, first_of(shard + 1) - first);
    const auto reader = open(shard);
    const ShardIndex& index = reader->index();
    const std::uint64_t row = first - first_of(shard);
    reader->read_rows(*index.find(x_name), row, n_here, x.first(n_here * x_bytes));
    reader->read_rows(*index.find(y_name), row, n_here, y.first(n_here * y_bytes));
    x = x.subspan(n_here * x_bytes);
    y = y.subspan(n_here * y_bytes);
    first += n_here;
    n -= n_here;
  }
}

std::vector<std::byte> ShardSet::read_encoded(std::uint64_t sample, std::span<std::byte> y) const {
  core::require(spec().is_encoded() && sample < n_samples(), "the encoded sample to read is in an encoded set");
  const std::size_t shard = shard_of(sample);
  const auto reader = open(shard);
  const ShardIndex& index = reader->index();
  const std::uint64_t row = sample - first_of(shard);
  std::array<std::byte, 2 * sizeof(std::uint64_t)> offsets{};
  reader->read_rows(*index.find(x_offset_name), row, 2, offsets);
  const auto begin = from_little_endian<std::uint64_t>(offsets);
  const auto end = from_little_endian<std::uint64_t>(std::span{offsets}.last(sizeof(std::uint64_t)));
  const ArrayIndex& x = *index.find(x_name);
  if (begin > end || end > x.n_rows)
    fail_damaged(fmt::format("sample {} lies at bytes {} to {} of x, which has {}", sample, begin, end, x.n_rows),
                 reader->file().path());
  std::vector<std::byte> image(end - begin);
  reader->read_rows(x, begin, image.size(), image);
  reader->read_rows(*index.find(y_name), row, 1, y);
  return image;
}

}  // namespace lockstep::data
