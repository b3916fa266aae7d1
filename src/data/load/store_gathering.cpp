#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include "core/error.hpp"
#include "data/load/store.hpp"

namespace lockstep::data {
namespace {

// The limit for samples that are read ahead at a time, with their bookkeeping; two such groups may be in memory.
constexpr std::uint64_t most_bytes = std::uint64_t{32} << 20;

// Reading a part of a file costs as much as delivering about ten samples; with this many samples per part it no longer
// matters. With fewer than two samples per part, nothing is gained.
constexpr std::uint64_t least_per_part = 2, enough_per_part = 32;

// The first of several may be this large; each later one grows by the factor, until reading together pays off fully.
constexpr std::uint64_t first_samples = 2048, growth = 16;

// A thread takes this many samples at a time.
constexpr std::size_t taken_together = 4096;

/// Samples that are read together wherever they are in it: a compressed chunk, else about the range of a check sum.
std::uint64_t part_samples(const ShardSet& set) noexcept {
  if (set.manifest().filter != io::Filter::none) return set.manifest().chunk_samples;
  return std::max<std::uint64_t>(1, crc_block_bytes / std::max(set.spec().x.bytes(), set.spec().y.bytes()));
}

/// Samples of some consecutive batches: first planned, then read by the threads that need them.
class Gathering {
 public:
  Gathering(const ShardSet& set, std::uint64_t first_batch) : set_{set}, first_batch_{first_batch} {}

  void add_batch(const IdsOf& ids_of) {
    ids_of(first_batch_ + n_batches(), ids_);
    ends_.push_back(ids_.size());
  }

  [[nodiscard]] std::uint64_t first_batch() const noexcept { return first_batch_; }
  [[nodiscard]] std::uint64_t n_batches() const noexcept { return ends_.size() - 1; }
  [[nodiscard]] std::uint64_t end_batch() const noexcept { return first_batch_ + n_batches(); }
  [[nodiscard]] std::size_t n_samples() const noexcept { return ids_.size(); }

  /// Called after the last batch.
  void plan() {
    x_.resize(ids_.size() * x_bytes_);
    y_.resize(ids_.size() * y_bytes_);
    places_.reserve(ids_.size());
    for (std::size_t place = 0; place < ids_.size(); ++place) places_.emplace_back(ids_[place], place);
    std::ranges::sort(places_);
    n_pieces_ = (ids_.size() + taken_together - 1) / taken_together;
    n_open_ = n_pieces_;
  }

  /// Returns when everything is read; any number of threads may call it, and they share the work.
  void read() {
    Part part;
    for (std::size_t piece = next_piece_++; piece < n_pieces_; piece = next_piece_++) {
      std::exception_ptr error;
      try {
        read_piece(piece, part);
      } catch (...) {
        error = std::current_exception();  // no memory to note what failed
      }
      const std::lock_guard lock{mutex_};
      if (error) error_ = error;
      if (--n_open_ == 0) is_read_.notify_all();
    }
    std::unique_lock lock{mutex_};
    is_read_.wait(lock, [&] { return n_open_ == 0; });
  }

  /// Called after read(); rethrows an error in reading one of these samples.
  void append(const Wanted& wanted, std::vector<StoredSample>& samples) const {
    const std::size_t begin = ends_[wanted.batch - first_batch_] + static_cast<std::size_t>(wanted.first);
    const std::size_t end = begin + wanted.ids.size();
    if (error_) std::rethrow_exception(error_);
    for (const auto& [place, error] : failed_)
      if (place >= begin && place < end) std::rethrow_exception(error);
    for (std::size_t place = begin; place < end; ++place)
      samples.push_back(
          {std::span{x_}.subspan(place * x_bytes_, x_bytes_), std::span{y_}.subspan(place * y_bytes_, y_bytes_)});
  }

 private:
  using Place = std::pair<std::uint64_t, std::size_t>;  ///< a sample's id, and its place in the window
  /// A thread's memory.
  struct Part {
    std::vector<std::byte> x, y;
  };

  // Moves the ends of pieces to those of parts, so that no part is read twice.
  [[nodiscard]] std::size_t begin_of(std::size_t piece) const {
    std::size_t place = std::min(piece * taken_together, places_.size());
    if (place == 0 || place == places_.size()) return place;
    const std::uint64_t end = end_of_part(places_[place - 1].first);
    while (place < places_.size() && places_[place].first < end) ++place;
    return place;
  }

  [[nodiscard]] std::uint64_t end_of_part(std::uint64_t id) const {
    const std::size_t shard = set_.shard_of(id);
    const std::uint64_t first = set_.first_of(shard);
    return std::min(first + ((id - first) / part_samples_ + 1) * part_samples_, set_.first_of(shard + 1));
  }

  void read_piece(std::size_t piece, Part& part) {
    const std::size_t end = begin_of(piece + 1);
    for (std::size_t begin = begin_of(piece); begin < end;) {
      const std::uint64_t part_end = end_of_part(places_[begin].first);
      std::size_t next = begin + 1;
      while (next < end && places_[next].first < part_end) ++next;
      read_part(std::span{places_}.subspan(begin, next - begin), part);
      begin = next;
    }
  }

  void read_part(std::span<const Place> places, Part& part) {
    if (places.size() > 1 && read_range(places, part)) return;
    // Damage affects only its own samples, and is reported only when they are needed.
    for (const Place& place : places) {
      try {
        copy_range({&place, 1}, part);
      } catch (...) {
        const std::lock_guard lock{mutex_};
        failed_.emplace_back(place.second, std::current_exception());
      }
    }
  }

  bool read_range(std::span<const Place> places, Part& part) try {
    copy_range(places, part);
    return true;
  } catch (...) {
    return false;  // reported again with the sample that causes it
  }

  // Reads everything between the first and the last of some samples in one shard.
  void copy_range(std::span<const Place> places, Part& part) {
    const std::uint64_t first = places.front().first, n = places.back().first - first + 1;
    part.x.resize(n * x_bytes_);
    part.y.resize(n * y_bytes_);
    set_.read(first, n, part.x, part.y);
    for (const auto& [id, place] : places) {
      std::memcpy(x_.data() + place * x_bytes_, part.x.data() + (id - first) * x_bytes_, x_bytes_);
      std::memcpy(y_.data() + place * y_bytes_, part.y.data() + (id - first) * y_bytes_, y_bytes_);
    }
  }

  const ShardSet& set_;
  const std::size_t x_bytes_ = set_.spec().x.bytes(), y_bytes_ = set_.spec().y.bytes();
  const std::uint64_t part_samples_ = data::part_samples(set_);
  const std::uint64_t first_batch_;
  std::vector<std::size_t> ends_{0};  ///< where each batch begins, followed by the end
  std::vector<std::uint64_t> ids_;
  std::vector<Place> places_;  ///< ascending
  std::vector<std::byte> x_, y_;
  std::size_t n_pieces_ = 0;
  std::atomic<std::size_t> next_piece_{0};
  std::mutex mutex_;  // guards the rest
  std::condition_variable is_read_;
  std::size_t n_open_ = 0;
  std::vector<std::pair<std::size_t, std::exception_ptr>> failed_;  ///< by place in the window
  std::exception_ptr error_;                                        ///< of all
};

class GatheringStore final : public Store {
 public:
  GatheringStore(std::shared_ptr<const ShardSet> set, std::uint64_t n_samples, std::uint64_t n_batches, IdsOf ids_of)
      : set_{std::move(set)}, n_samples_{n_samples}, n_batches_{n_batches}, ids_of_{std::move(ids_of)} {}

  void begin(std::uint64_t first, std::uint64_t end) override {
    forget();
    begin_ = first;
    end_ = end;
  }

  void fetch(const Wanted& wanted, Fetched& fetched) override {
    const std::shared_ptr<Gathering> window = window_of(wanted.batch);
    window->read();
    fetched.samples.clear();
    fetched.owners.assign(1, window);
    window->append(wanted, fetched.samples);
  }

  void forget() noexcept override { last_ = before_ = nullptr; }

 private:
  std::shared_ptr<Gathering> window_of(std::uint64_t batch) {
    const std::lock_guard lock{mutex_};
    core::require(batch >= begin_ && batch < end_, "a requested batch is one of those that begin() has announced");
    while (!last_ || batch >= last_->end_batch()) {
      auto next = planned();
      before_ = std::exchange(last_, std::move(next));
    }
    if (batch >= last_->first_batch()) return last_;
    core::require(before_ && batch >= before_->first_batch(), "batches are requested approximately in their order");
    return before_;
  }

  // The first is small, so that the first batch is ready soon. Each has at least as many batches as are requested at
  // once, so that two are enough.
  std::shared_ptr<Gathering> planned() const {
    const std::uint64_t first = last_ ? last_->end_batch() : begin_;
    const std::uint64_t wanted =
        last_ ? std::min<std::uint64_t>(n_samples_, growth * last_->n_samples()) : std::min(n_samples_, first_samples);
    auto window = std::make_shared<Gathering>(*set_, first);
    while (window->end_batch() < end_ && (window->n_batches() < n_batches_ || window->n_samples() < wanted))
      window->add_batch(ids_of_);
    window->plan();
    return window;
  }

  const std::shared_ptr<const ShardSet> set_;
  const std::uint64_t n_samples_, n_batches_;
  const IdsOf ids_of_;
  std::mutex mutex_;  // guards the rest
  std::uint64_t begin_ = 0, end_ = 0;
  std::shared_ptr<Gathering> last_, before_;
};

}  // namespace

std::uint64_t gathered_samples(const ShardSet& set) {
  if (set.spec().is_encoded()) return 0;
  const std::uint64_t step = part_samples(set);
  std::uint64_t n_parts = 0;
  for (std::size_t shard = 0; shard < set.n_shards(); ++shard)
    n_parts += (set.first_of(shard + 1) - set.first_of(shard) + step - 1) / step;
  constexpr std::uint64_t planning_bytes = 3 * sizeof(std::uint64_t);
  const std::uint64_t most = most_bytes / (set.spec().x.bytes() + set.spec().y.bytes() + planning_bytes);
  const std::uint64_t n_samples = std::min({most, n_parts * enough_per_part, set.n_samples()});
  return n_samples < n_parts * least_per_part ? 0 : n_samples;
}

std::unique_ptr<Store> make_gathering_store(std::shared_ptr<const ShardSet> set, std::uint64_t n_samples,
                                            std::uint64_t n_batches, IdsOf ids_of) {
  return std::make_unique<GatheringStore>(std::move(set), n_samples, n_batches, std::move(ids_of));
}

}  // namespace lockstep::data
