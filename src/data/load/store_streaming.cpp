#include <algorithm>
#include <cstring>
#include <utility>

#include "data/load/block_cache.hpp"
#include "data/load/store.hpp"

namespace lockstep::data {
namespace {

/// Makes room; never frees memory.
std::span<std::byte> grown(std::vector<std::byte>& memory, std::uint64_t bytes) {
  if (memory.size() < bytes) memory.resize(static_cast<std::size_t>(bytes));
  return std::span{memory}.first(static_cast<std::size_t>(bytes));
}

/// Reads each sample separately, which is the least traffic if neighbours are not needed soon.
class SampleStore final : public Store {
 public:
  explicit SampleStore(std::shared_ptr<const ShardSet> set) : set_{std::move(set)} {}

  void fetch(const Wanted& wanted, Fetched& fetched) override {
    const std::span ids = wanted.ids;
    const std::size_t y_bytes = set_->spec().y.bytes();
    const std::span y = grown(fetched.y, ids.size() * y_bytes);
    fetched.samples.resize(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) fetched.samples[i].y = y.subspan(i * y_bytes, y_bytes);
    if (set_->spec().is_encoded())
      fetch_encoded(ids, fetched, y);
    else
      fetch_raw(ids, fetched, y);
  }

 private:
  void fetch_raw(std::span<const std::uint64_t> ids, Fetched& fetched, std::span<std::byte> y) const {
    const std::size_t x_bytes = set_->spec().x.bytes(), y_bytes = set_->spec().y.bytes();
    const std::span x = grown(fetched.x, ids.size() * x_bytes);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::span mine = x.subspan(i * x_bytes, x_bytes);
      set_->read(ids[i], 1, mine, y.subspan(i * y_bytes, y_bytes));
      fetched.samples[i].x = mine;
    }
  }

  void fetch_encoded(std::span<const std::uint64_t> ids, Fetched& fetched, std::span<std::byte> y) const {
    const std::size_t y_bytes = set_->spec().y.bytes();
    std::vector<std::size_t> ends;
    std::size_t end = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::vector<std::byte> file = set_->read_encoded(ids[i], y.subspan(i * y_bytes, y_bytes));
      std::ranges::copy(file, grown(fetched.x, end + file.size()).begin() + static_cast<std::ptrdiff_t>(end));
      ends.push_back(end += file.size());
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::size_t begin = i == 0 ? 0 : ends[i - 1];
      fetched.samples[i].x = std::span{fetched.x}.subspan(begin, ends[i] - begin);
    }
  }

  std::shared_ptr<const ShardSet> set_;
};

/// Reads whole blocks and keeps the last ones. Samples point into them; the fetching thread keeps them alive meanwhile.
class BlockStore final : public Store {
 public:
  BlockStore(std::shared_ptr<const ShardSet> set, const StreamingOptions& options)
      : options_{options},
        set_{std::move(set)},
        starts_{block_starts(*set_)},
        blocks_{options.n_blocks,
                [this](std::uint64_t number, Block& block) { read(static_cast<std::size_t>(number), block); }} {}

  void fetch(const Wanted& wanted, Fetched& fetched) override {
    fetched.samples.clear();
    fetched.owners.clear();
    if (options_.n_threads > 1) spread_reading(wanted.ids);
    std::shared_ptr<const Block> block;
    for (const std::uint64_t id : wanted.ids) {
      if (!block || id < block->first || id - block->first >= block->n) {
        block = blocks_.get(number_of(id));
        fetched.owners.push_back(block);
      }
      fetched.samples.push_back(block->sample(id));
    }
  }

  void forget() noexcept override { blocks_.clear(); }

 private:
  // Instead of waiting for a block that another thread reads, first reads another one that is needed soon.
  void spread_reading(std::span<const std::uint64_t> ids) {
    if (options_.is_sequential) {
      std::uint64_t number = ids.empty() ? starts_.size() : number_of(ids.back());
      if (number >= starts_.size() || !blocks_.is_being_read(number)) return;
      const std::uint64_t end = std::min<std::uint64_t>(starts_.size(), number + options_.n_threads);
      while (++number < end && !blocks_.prefetch(number)) {
      }
      return;
    }
    for (const std::uint64_t id : ids) (void)blocks_.prefetch(number_of(id));
  }

  std::uint64_t number_of(std::uint64_t id) const noexcept {
    return static_cast<std::uint64_t>(std::upper_bound(starts_.begin(), starts_.end(), id) - starts_.begin() - 1);
  }

  void read(std::size_t number, Block& block) const {
    const std::uint64_t end = number + 1 < starts_.size() ? starts_[number + 1] : set_->n_samples();
    read_block(*set_, starts_[number], end - starts_[number], block);
  }

  StreamingOptions options_;
  std::shared_ptr<const ShardSet> set_;
  std::vector<std::uint64_t> starts_;
  BlockCache blocks_;
};

}  // namespace

std::unique_ptr<Store> make_streaming_store(std::shared_ptr<const ShardSet> set, const StreamingOptions& options) {
  if (options.by_block) return std::make_unique<BlockStore>(std::move(set), options);
  return std::make_unique<SampleStore>(std::move(set));
}

}  // namespace lockstep::data
