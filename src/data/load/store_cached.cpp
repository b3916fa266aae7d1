#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "data/load/store.hpp"
#include "runtime/communicator.hpp"
#include "runtime/together.hpp"

namespace lockstep::data {
namespace {

// A rank reads its part in pieces of about this many bytes, so that its threads share the work.
constexpr std::uint64_t read_together = std::uint64_t{4} << 20;

constexpr std::uint64_t line_bytes = 64;

constexpr std::uint64_t round_to_line(std::uint64_t bytes) noexcept {
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

/// Calls `f(0)` ... `f(n - 1)` on this thread and up to `n_threads` others; rethrows the first failure once all have
/// ended.
template <class F>
void in_parallel(std::uint64_t n, std::size_t n_threads, F f) {
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (std::uint64_t i = next++; i < n; i = next++) f(i);
    } catch (...) {
      next = n;
      const std::lock_guard lock{mutex};
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(n_threads);
  try {
    for (std::size_t i = 0; i < std::min<std::uint64_t>(n_threads, n); ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // The system allows no more threads: the existing ones do the work.
  }
  work();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

/// Samples [first, first + n) of one shard.
struct Stretch {
  std::size_t shard = 0;
  std::uint64_t first = 0;
  std::uint64_t n = 0;
};

/// [first, end) cut at the borders of shards.
std::vector<Stretch> runs_of(const ShardSet& set, std::uint64_t first, std::uint64_t end) {
  std::vector<Stretch> runs;
  while (first < end) {
    const std::size_t shard = set.shard_of(first);
    const std::uint64_t shard_end = shard + 1 < set.n_shards() ? set.first_of(shard + 1) : set.n_samples();
    runs.push_back({shard, first, std::min(end, shard_end) - first});
    first += runs.back().n;
  }
  return runs;
}

/// Rank r of a node holds samples [r k, (r + 1) k), in its part of the segment: offsets (encoded sets), y, x.
class CachedStore final : public Store {
 public:
  CachedStore(const runtime::Communicator& world, const ShardSet& set, std::size_t n_threads)
      : node_{world.split_shared()},
        x_bytes_{set.spec().is_encoded() ? 0 : set.spec().x.bytes()},
        y_bytes_{set.spec().y.bytes()} {
    const auto n_ranks = static_cast<std::uint64_t>(node_->n_ranks()), rank = static_cast<std::uint64_t>(node_->rank());
    per_rank_ = std::max<std::uint64_t>(1, set.n_samples() / n_ranks + (set.n_samples() % n_ranks != 0 ? 1 : 0));
    const std::uint64_t first = std::min(set.n_samples(), rank * per_rank_);
    const std::uint64_t end = std::min(set.n_samples(), first + per_rank_);

    std::vector<std::uint64_t> offsets;  // of encoded sets
    runtime::together(world, [&] {
      if (set.spec().is_encoded()) offsets = offsets_of(set, first, end);
    });
    const std::uint64_t x_total = offsets.empty() ? x_bytes_ * per_rank_ : offsets.back();
    segment_ = node_->share(static_cast<std::size_t>(offset_bytes() + label_bytes() + x_total));
    const std::span mine = segment_->part(node_->rank());
    std::ranges::copy(std::as_bytes(std::span{offsets}), mine.begin());
    runtime::together(world, [&] {
      set.spec().is_encoded() ? read_encoded(set, first, end, offsets, n_threads)
                              : read_raw(set, first, end, n_threads);
    });
    for (int part = 0; part < node_->n_ranks(); ++part) parts_.push_back(segment_->part(part).data());
  }

  void fetch(const Wanted& wanted, Fetched& fetched) override {
    fetched.samples.resize(wanted.ids.size());
    for (std::size_t i = 0; i < wanted.ids.size(); ++i) fetched.samples[i] = locate(wanted.ids[i]);
  }

 private:
  std::uint64_t offset_bytes() const noexcept {
    return x_bytes_ == 0 ? round_to_line((per_rank_ + 1) * sizeof(std::uint64_t)) : 0;
  }
  std::uint64_t label_bytes() const noexcept { return round_to_line(per_rank_ * y_bytes_); }

  StoredSample locate(std::uint64_t id) const noexcept {
    const std::byte* part = parts_[static_cast<std::size_t>(id / per_rank_)];
    const std::uint64_t index = id % per_rank_;
    const std::byte* const y = part + offset_bytes();
    const std::byte* const x = y + label_bytes();
    const std::span label{y + index * y_bytes_, y_bytes_};
    if (x_bytes_ != 0) return {{x + index * x_bytes_, x_bytes_}, label};
    const auto* const offsets = reinterpret_cast<const std::uint64_t*>(part);
    return {{x + offsets[index], offsets[index + 1] - offsets[index]}, label};
  }

  /// Returns where each sample of [first, end) will begin in this rank's part of x, and the end.
  static std::vector<std::uint64_t> offsets_of(const ShardSet& set, std::uint64_t first, std::uint64_t end) {
    std::vector<std::uint64_t> offsets{0};
    for (const Stretch& run : runs_of(set, first, end)) {
      const std::vector<std::uint64_t> stored = read_offsets(set, run.first, run.n);
      const std::uint64_t base = offsets.back();
      for (std::size_t i = 1; i < stored.size(); ++i) offsets.push_back(base + stored[i] - stored[0]);
    }
    return offsets;
  }

  void read_raw(const ShardSet& set, std::uint64_t first, std::uint64_t end, std::size_t n_threads) const {
    const std::span mine = segment_->part(node_->rank());
    const std::span y = mine.first(static_cast<std::size_t>(label_bytes()));
    const std::span x = mine.subspan(y.size());
    // All pieces but the first begin where chunks do, so that no chunk is read twice.
    const std::uint64_t step = set.manifest().chunk_samples;
    std::vector<Stretch> pieces;
    for (const Stretch& run : runs_of(set, first, end)) {
      const std::uint64_t shard_first = set.first_of(run.shard);
      for (std::uint64_t begin = run.first; begin < run.first + run.n;) {
        const std::uint64_t next = std::min(run.first + run.n, shard_first + ((begin - shard_first) / step + 1) * step);
        pieces.push_back({run.shard, begin, next - begin});
        begin = next;
      }
    }
    in_parallel(pieces.size(), n_threads, [&](std::uint64_t number) {
      const Stretch& piece = pieces[static_cast<std::size_t>(number)];
      const std::uint64_t at = piece.first - first;
      set.read(piece.first, piece.n, x.subspan(at * x_bytes_, piece.n * x_bytes_),
               y.subspan(at * y_bytes_, piece.n * y_bytes_));
    });
  }

  void read_encoded(const ShardSet& set, std::uint64_t first, std::uint64_t end,
                    const std::vector<std::uint64_t>& offsets, std::size_t n_threads) const {
    const std::span mine = segment_->part(node_->rank()).subspan(static_cast<std::size_t>(offset_bytes()));
    const std::span y = mine.first(static_cast<std::size_t>(label_bytes()));
    const std::span x = mine.subspan(y.size());
    for (const Stretch& run : runs_of(set, first, end)) {
      const std::uint64_t at = run.first - first;
      data::read_rows(set, run.shard, y_name, run.first - set.first_of(run.shard), run.n,
                      y.subspan(at * y_bytes_, run.n * y_bytes_));
      const std::span files = x.subspan(offsets[at], offsets[at + run.n] - offsets[at]);
      const std::uint64_t stored_first = read_offsets(set, run.first, 1).front();
      in_parallel((files.size() + read_together - 1) / read_together, n_threads, [&](std::uint64_t number) {
        const std::uint64_t begin = number * read_together;
        const std::span piece = files.subspan(begin, std::min(read_together, files.size() - begin));
        data::read_rows(set, run.shard, x_name, stored_first + begin, piece.size(), piece);
      });
    }
  }

  std::unique_ptr<runtime::Communicator> node_;
  std::unique_ptr<runtime::SharedSegment> segment_;
  std::uint64_t per_rank_ = 1;
  std::uint64_t x_bytes_;  ///< 0: encoded
  std::uint64_t y_bytes_;
  std::vector<const std::byte*> parts_;
};

}  // namespace

core::Bytes cached_bytes(const ShardSet& set) {
  const SetSpec& spec = set.spec();
  if (!spec.is_encoded()) return {set.n_samples() * (spec.x.bytes() + spec.y.bytes())};
  core::Bytes sum;
  for (const Split& split : set.manifest().splits) sum.value += split.stored_bytes().value;
  return sum;
}

std::unique_ptr<Store> make_cached_store(const runtime::Communicator& world, const ShardSet& set,
                                         std::size_t n_threads) {
  return std::make_unique<CachedStore>(world, set, n_threads);
}

}  // namespace lockstep::data
