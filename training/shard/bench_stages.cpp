#include "training/shard/bench_stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>
#include <thread>

#include "core/error.hpp"
#include "core/timer.hpp"
#include "data/image/image.hpp"
#include "io/file.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/memory.hpp"

namespace lockstep::training::shard {
namespace {

constexpr std::uint64_t encoded_unit_samples = 64;
constexpr std::uint64_t read_piece_bytes = std::uint64_t{4} << 20;  // the size of a default chunk
constexpr std::uint64_t copy_piece_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t most_kept_bytes = std::uint64_t{16} << 20;  // of samples for `augment`
constexpr std::uint64_t most_kept_samples = 256;

data::AugmentOptions augment_options(const BenchOptions& o, const data::SetSpec& spec) {
  data::AugmentOptions options;
  if (!o.augment.empty()) options.steps = data::parse_augment(o.augment, "--augment");
  const bool becomes_float = spec.is_encoded() || spec.x.dtype == core::DType::uint8 || core::is_floating(spec.x.dtype);
  options.dtype =
      becomes_float && o.dtype != "stored" ? core::find_dtype(o.dtype).value_or(core::DType::float32) : spec.x.dtype;
  options.key = "--augment";
  options.layout = o.layout;
  options.seed = o.seed;
  return options;
}

data::LoaderOptions loader_options(const BenchOptions& o, const data::SetSpec& spec) {
  return {.global_batch = o.batch,
          .sampler = {.order = o.order, .seed = o.seed, .window_chunks = o.window_chunks},
          .augment = augment_options(o, spec),
          .cache = o.cache,
          .threads = o.threads};
}

// Where each shard's units begin, followed by their number.
std::vector<std::uint64_t> count_units(const data::Split& split, std::uint64_t unit_samples) {
  std::vector<std::uint64_t> firsts{0};
  for (const data::ShardEntry& shard : split.shards)
    firsts.push_back(firsts.back() + (shard.n_samples + unit_samples - 1) / unit_samples);
  return firsts;
}

class Deadline {
 public:
  explicit Deadline(const Budget& budget) : limit_s_{budget.time.value} {}
  /// Also true if a signal asks for an end.
  [[nodiscard]] bool is_over() const noexcept {
    return (limit_s_ > 0 && watch_.elapsed().value >= limit_s_) || runtime::pending_interrupt() != 0;
  }

 private:
  double limit_s_;
  core::Stopwatch watch_{};
};

}  // namespace

BenchStages::BenchStages(const BenchOptions& options, const runtime::Communicator& world,
                         std::shared_ptr<const data::ShardSet> set)
    : rank_{world.rank()},
      n_ranks_{world.n_ranks()},
      set_{std::move(set)},
      split_{options.split},
      layout_{options.layout} {
  loader_ = std::make_unique<data::Loader>(world, set_, loader_options(options, set_->spec()));
  n_threads_ = 1 + loader_->stats().threads;
  const data::Split& split = set_->manifest().split(options.split, options.folder);
  stored_ = split.stored_bytes();
  unit_samples_ = set_->spec().is_encoded() ? encoded_unit_samples : set_->manifest().chunk_samples;
  first_units_ = count_units(split, unit_samples_);
}

Work BenchStages::run(Stage stage, const Budget& budget) {
  switch (stage) {
    case Stage::copy: return copy(budget);
    case Stage::pread: return pread(budget);
    case Stage::read: return read(budget);
    case Stage::augment: return augment(budget);
    case Stage::loader: break;
  }
  return load(budget);
}

void BenchStages::drop_caches() const {
  loader_->forget();
  for (const data::ShardEntry& shard : set_->manifest().split(split_, set_->folder()).shards)
    io::File{(std::filesystem::path{set_->folder()} / shard.file).string()}.drop_cache();
}

BenchStages::Unit BenchStages::unit(std::uint64_t number) const {
  const auto after = std::upper_bound(first_units_.begin(), first_units_.end(), number);
  const auto shard = static_cast<std::size_t>(after - first_units_.begin()) - 1;
  const std::uint64_t local = number - first_units_[shard];
  const std::uint64_t n_units = first_units_[shard + 1] - first_units_[shard];
  const std::uint64_t end = shard + 1 < set_->n_shards() ? set_->first_of(shard + 1) : set_->n_samples();
  Unit unit{.shard = shard, .first = set_->first_of(shard) + local * unit_samples_};
  unit.n = std::min(unit_samples_, end - unit.first);
  const std::uint64_t file_bytes = set_->open(shard)->file().size().value;
  const std::uint64_t share = file_bytes / n_units;
  unit.begin = {local * share};
  unit.end = {local + 1 == n_units ? file_bytes : (local + 1) * share};
  return unit;
}

Work BenchStages::on_threads(const std::function<Work(int)>& body) const {
  const auto n = static_cast<std::size_t>(n_threads_);
  std::vector<Work> works(n);
  std::vector<std::exception_ptr> errors(n);
  std::vector<std::thread> threads;
  const auto guarded = [&](std::size_t thread) {
    try {
      works[thread] = body(static_cast<int>(thread));
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  const core::Stopwatch watch;
  threads.reserve(n);
  std::size_t thread = 1;
  try {
    for (; thread < n; ++thread) threads.emplace_back(guarded, thread);
    guarded(0);
  } catch (const std::system_error& error) {
    errors[thread] = std::make_exception_ptr(
        core::Error{core::ExitCode::system,
                    {.what = fmt::format("cannot start thread {} of {}: {}", thread, n - 1, error.code().message()),
                     .fix = "use fewer --threads, or allow more processes (ulimit -u)"}});
  }
  for (std::thread& started : threads) started.join();
  Work sum{.time_s = watch.elapsed().value};
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  for (const Work& work : works) {
    sum.n_samples += work.n_samples;
    sum.bytes_stored += work.bytes_stored;
    sum.bytes_delivered += work.bytes_delivered;
  }
  return sum;
}

Work BenchStages::over_units(const Budget& budget, const std::function<OnUnit()>& make) const {
  return on_threads([&](int thread) {
    const auto worker = static_cast<std::uint64_t>(rank_ * n_threads_ + thread);
    const auto n_workers = static_cast<std::uint64_t>(n_ranks_ * n_threads_);
    const std::uint64_t begin = first_units_.back() * worker / n_workers;
    const std::uint64_t end = first_units_.back() * (worker + 1) / n_workers;
    const OnUnit on_unit = make();
    const Deadline deadline{budget};
    Work work;
    for (std::uint64_t number = begin; number < end && !deadline.is_over();) {
      on_unit(unit(number), work);
      if (++number == end && budget.repeats) number = begin;
    }
    return work;
  });
}

// Copies from memory into cache, as from the page cache into a batch.
Work BenchStages::copy(const Budget& budget) {
  if (copy_source_.bytes().empty()) {
    const std::uint64_t bytes =
        std::clamp(2 * runtime::last_level_cache().value, std::uint64_t{64} << 20, std::uint64_t{512} << 20);
    copy_source_ = runtime::Buffer{core::Bytes{bytes / copy_piece_bytes * copy_piece_bytes}};
    std::memset(copy_source_.bytes().data(), 1, copy_source_.bytes().size());
  }
  const double sample_bytes = static_cast<double>(loader_->augment().output().bytes() + set_->spec().y.bytes());
  return on_threads([&](int thread) {
    std::vector<std::byte> destination(copy_piece_bytes);
    const std::size_t n_pieces = copy_source_.bytes().size() / copy_piece_bytes;
    std::size_t piece = n_pieces * static_cast<std::size_t>(thread) / static_cast<std::size_t>(n_threads_);
    const Deadline deadline{{.time = budget.time.value > 0 ? budget.time : core::Seconds{0.5}}};
    Work work;
    do {
      std::memcpy(destination.data(), copy_source_.bytes().data() + piece * copy_piece_bytes, copy_piece_bytes);
      asm volatile("" : : "r"(destination.data()) : "memory");  // keeps compilers from removing the copy
      piece = (piece + 1) % n_pieces;
      work.bytes_delivered += static_cast<double>(copy_piece_bytes);
    } while (!deadline.is_over());
    work.n_samples = work.bytes_delivered / sample_bytes;
    return work;
  });
}

Work BenchStages::pread(const Budget& budget) {
  return over_units(budget, [this]() -> OnUnit {
    return [this, piece = std::vector<std::byte>(read_piece_bytes)](const Unit& unit, Work& work) mutable {
      const auto reader = set_->open(unit.shard);
      for (std::uint64_t at = unit.begin.value; at < unit.end.value; at += read_piece_bytes) {
        const std::uint64_t n = std::min(read_piece_bytes, unit.end.value - at);
        reader->file().read_at(at, std::span{piece}.first(n));
      }
      work.n_samples += static_cast<double>(unit.n);
      work.bytes_stored += static_cast<double>(unit.end.value - unit.begin.value);
    };
  });
}

void BenchStages::read_unit(const Unit& unit, std::span<std::byte> x, std::span<std::byte> y, Work& work) const {
  const data::SetSpec& spec = set_->spec();
  if (!spec.is_encoded()) {
    set_->read(unit.first, unit.n, x.first(unit.n * spec.x.bytes()), y.first(unit.n * spec.y.bytes()));
    work.bytes_delivered += static_cast<double>(unit.n * (spec.x.bytes() + spec.y.bytes()));
  } else {
    for (std::uint64_t i = 0; i < unit.n; ++i)
      work.bytes_delivered += static_cast<double>(fetch(unit.first + i).x.size() + spec.y.bytes());
  }
  work.n_samples += static_cast<double>(unit.n);
  work.bytes_stored += static_cast<double>(unit.end.value - unit.begin.value);
}

Work BenchStages::read(const Budget& budget) {
  const data::SetSpec& spec = set_->spec();
  const std::uint64_t x_bytes = spec.is_encoded() ? 0 : unit_samples_ * spec.x.bytes();
  const std::uint64_t y_bytes = unit_samples_ * spec.y.bytes();
  return over_units(budget, [this, x_bytes, y_bytes]() -> OnUnit {
    return [this, x = std::vector<std::byte>(x_bytes), y = std::vector<std::byte>(y_bytes)](
               const Unit& unit, Work& work) mutable { read_unit(unit, x, y, work); };
  });
}

std::uint64_t BenchStages::channels() const {
  const auto& shape = loader_->augment().output().shape;
  return layout_ == data::ChannelOrder::nchw ? shape.front() : shape.back();
}

// Fetches one stored sample; for an image file, its pixels.
BenchStages::Sample BenchStages::fetch(std::uint64_t sample) const {
  std::vector<std::byte> y(set_->spec().y.bytes());
  if (!set_->spec().is_encoded()) {
    Sample raw{.x = std::vector<std::byte>(set_->spec().x.bytes())};
    set_->read(sample, 1, raw.x, y);
    return raw;
  }
  try {
    data::Image image = data::decode_image(set_->read_encoded(sample, y), channels());
    return {.x = std::move(image.pixels), .height = image.height, .width = image.width};
  } catch (const data::ImageError& error) {
    throw core::Error{core::ExitCode::failed,
                      {.what = fmt::format("sample {} cannot be decoded: {}", sample, error.reason),
                       .where = set_->folder(),
                       .fix = "lockstep shard verify tells whether the set is damaged"}};
  }
}

Work BenchStages::augment(const Budget& budget) {
  std::uint64_t kept_bytes = 0;
  const std::uint64_t most = std::min(most_kept_samples, set_->n_samples());
  while (samples_.size() < most && kept_bytes < most_kept_bytes)
    kept_bytes += samples_.emplace_back(fetch(samples_.size())).x.size();
  const data::Augment& augment = loader_->augment();
  const std::uint64_t out_bytes = augment.output().bytes();
  return on_threads([&](int thread) {
    std::vector<std::byte> out(out_bytes);
    std::vector<std::byte> scratch(augment.scratch_bytes());
    const Deadline deadline{{.time = budget.time.value > 0 ? budget.time : core::Seconds{0.5}}};
    Work work;
    do {
      for (std::size_t i = 0; i < samples_.size(); ++i) {
        const Sample& sample = samples_[i];
        augment.apply(sample.x, sample.height, sample.width, static_cast<std::uint64_t>(thread), i, out, scratch);
      }
      work.n_samples += static_cast<double>(samples_.size());
    } while (!deadline.is_over());
    work.bytes_delivered = work.n_samples * static_cast<double>(out_bytes);
    return work;
  });
}

Work BenchStages::load(const Budget& budget) {
  const std::uint64_t sample_bytes = loader_->augment().output().bytes() + set_->spec().y.bytes();
  const std::uint64_t bytes_before = loader_->stats().bytes_read;
  const core::Stopwatch watch;
  const Deadline deadline{budget};
  Work work;
  loader_->begin_epoch(epoch_++);
  while (!deadline.is_over()) {
    if (const data::Batch* batch = loader_->next())
      work.n_samples += static_cast<double>(batch->n);
    else if (budget.repeats)
      loader_->begin_epoch(epoch_++);
    else
      break;
  }
  work.time_s = watch.elapsed().value;
  work.bytes_stored = static_cast<double>(loader_->stats().bytes_read - bytes_before);
  work.bytes_delivered = work.n_samples * static_cast<double>(sample_bytes);
  return work;
}

}  // namespace lockstep::training::shard
