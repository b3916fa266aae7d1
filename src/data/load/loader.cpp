#include "data/load/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/timer.hpp"
#include "data/augment/convert.hpp"
#include "data/format/damaged.hpp"
#include "data/image/image.hpp"
#include "data/load/pipeline.hpp"
#include "data/load/store.hpp"
#include "runtime/device.hpp"
#include "runtime/memory.hpp"
#include "runtime/session.hpp"
#include "runtime/together.hpp"
#include "runtime/topology.hpp"

namespace lockstep::data {
namespace {

// Prefetches this many samples ahead of their use, and this many bytes of each; the processor fetches the rest.
constexpr std::size_t prefetch_distance = 3;
constexpr std::size_t prefetch_bytes = 4096;

// A piece of a batch makes at least this much output, so that distributing it costs little.
constexpr std::size_t least_piece_bytes = 65536;

constexpr std::size_t most_threads = 8;

// Channels of decoded images, as Augment takes them.
constexpr std::uint64_t n_rgb = 3;

void prefetch(std::span<const std::byte> data) noexcept {
  for (std::size_t at = 0; at < std::min(data.size(), prefetch_bytes); at += 64) __builtin_prefetch(data.data() + at);
}

/// How many bytes a node's ranks may put into shared memory; 0 if unknown.
std::uint64_t room_for_cache() {
  const std::uint64_t memory = runtime::available_memory().value;
  std::error_code error;
  const auto shared = std::filesystem::space("/dev/shm", error);
  return error ? memory : std::min<std::uint64_t>(memory, shared.available);
}

/// Collective: returns the same on all ranks; requesting more than some node has is an error on all.
bool decide_cache(const runtime::Communicator& world, Cache cache, const ShardSet& set) {
  if (cache == Cache::none) return false;
  const std::uint64_t needed = cached_bytes(set).value, room = room_for_cache();
  if (cache == Cache::automatic) return !world.any(needed > room / 4);
  runtime::together(world, [&] {
    if (needed <= room) return;
    core::fail_usage(
        {.what = fmt::format("the set takes {} and does not fit into the shared memory of {}",
                             core::format_bytes({needed}), runtime::host_name()),
         .where = "--cache node",
         .expected = fmt::format("at most {} (free memory, and room in /dev/shm)", core::format_bytes({room})),
         .fix = "use --cache none or auto"});
  });
  return true;
}

/// Collective. `n_batches` are requested at once.
std::unique_ptr<Store> make_store(const runtime::Communicator& world, const std::shared_ptr<const ShardSet>& set,
                                  const LoaderOptions& options, bool is_cached, std::size_t n_threads,
                                  std::uint64_t n_batches, IdsOf ids_of) {
  if (is_cached) return make_cached_store(world, *set, n_threads);
  const bool is_blocked = options.sampler.order == Order::blocked;
  const bool is_sequential = options.sampler.order == Order::sequential;
  const bool is_random = !is_blocked && !is_sequential;
  if (const std::uint64_t n_samples = is_random ? gathered_samples(*set) : 0; n_samples > 0)
    return make_gathering_store(set, n_samples, n_batches, std::move(ids_of));
  const bool by_block = is_blocked || is_sequential || set->manifest().filter != io::Filter::none;
  // In order: only as many blocks as reading ahead needs, so that their memory stays in cache.
  const std::size_t n_blocks =
      is_sequential ? 2 + 2 * n_threads : static_cast<std::size_t>(options.sampler.window_chunks) + 3 + n_threads;
  return make_streaming_store(
      set, {.by_block = by_block, .n_blocks = n_blocks, .n_threads = n_threads + 1, .is_sequential = is_sequential});
}

LoaderOptions checked(LoaderOptions options) {
  if (options.global_batch == 0)
    core::fail_usage({.what = "a batch of 0 samples", .where = "--batch", .expected = "at least 1"});
  if (options.threads < -1)
    core::fail_usage({.what = fmt::format("{} threads", options.threads),
                      .where = "--threads",
                      .expected = "a number, 0 for none, or -1 for the spare cores"});
  if (options.is_evaluation) options.sampler.order = Order::sequential;
  if (options.is_repeated) options.threads = 0;
  options.batches_ahead = std::max<std::uint64_t>(1, options.batches_ahead);
  return options;
}

/// The memory in which a batch is assembled.
struct BatchBuffer {
  std::uint64_t n = 0;  ///< samples in it, if they are used again
  runtime::Buffer x, y;
  std::vector<std::uint64_t> ids;
  std::vector<ImageView> views{};                     ///< of x, if that is pixels
  std::span<const std::byte> x_there{}, y_there{};    ///< the batch itself, if the store has it in this form
  std::vector<std::shared_ptr<const void>> owners{};  ///< of the memory that these point into
};

/// The bytes of all parts if they are consecutive in memory, else nothing.
std::span<const std::byte> joined(std::span<const StoredSample> samples,
                                  std::span<const std::byte> StoredSample::*part) {
  if (samples.empty()) return {};
  const std::span<const std::byte> first = samples.front().*part;
  for (std::size_t i = 1; i < samples.size(); ++i)
    if ((samples[i].*part).data() != first.data() + i * first.size()) return {};
  return {first.data(), samples.size() * first.size()};
}

/// A thread's own memory.
struct Workspace {
  Fetched fetched;
  std::vector<std::byte> scratch;
};

}  // namespace

std::string_view name(Cache cache) noexcept {
  switch (cache) {
    case Cache::automatic: return "auto";
    case Cache::none: return "none";
    case Cache::node: break;
  }
  return "node";
}

BatchPlan batch_plan(const LoaderOptions& options, std::uint64_t n_samples, int rank, int n_ranks) noexcept {
  const Deal deal = options.is_evaluation                   ? Deal::ranges
                    : options.sampler.order == Order::torch ? Deal::strided
                                                            : Deal::slices;
  return BatchPlan{{.n_samples = n_samples,
                    .global_batch = options.global_batch,
                    .deal = deal,
                    .drop_last = options.drop_last,
                    .unit = options.unit,
                    .n_together = options.n_together,
                    .rank = static_cast<std::uint64_t>(rank),
                    .n_ranks = static_cast<std::uint64_t>(n_ranks)}};
}

bool keeps_pixels(const LoaderOptions& options, const Augment& augment) noexcept {
  return augment.pixels() && augment.pixels()->shape.back() <= options.most_pixel_channels;
}

struct Loader::State {
  State(const runtime::Communicator& world, const SetSpec& set_spec, std::uint64_t n_set_samples,
        const LoaderOptions& checked_options, std::vector<std::uint64_t> block_starts = {});

  void open(std::unique_ptr<Store> opened);
  void make_buffers();
  void make(const Pipeline::Piece& piece);
  std::uint64_t id_at(const Share& share, std::uint64_t index) const;
  void point_to(BatchBuffer& buffer, Fetched& fetched) const;
  void make_x(std::span<const StoredSample> samples, std::span<const std::uint64_t> ids, std::span<std::byte> x,
              std::span<ImageView> views, Workspace& workspace) const;
  void make_y(std::span<const StoredSample> samples, std::span<std::byte> y) const;
  void apply(const StoredSample& sample, std::uint64_t id, std::span<std::byte> out, ImageView* view,
             Workspace& workspace) const;

  LoaderOptions options;
  SetSpec spec;
  std::uint64_t n_samples;
  Augment augment;
  Sampler sampler;
  BatchPlan plan;
  core::DType y_dtype;
  bool keeps_pixels;
  std::size_t x_bytes;  ///< of a sample as it is delivered
  std::size_t y_bytes;
  std::size_t n_threads;
  std::size_t n_slots;  ///< batches that exist at once
  std::uint64_t n_pieces = 1;
  std::shared_ptr<const ShardSet> set{};  ///< null if samples are made
  bool is_cached = false;
  std::unique_ptr<Store> store{};
  std::vector<BatchBuffer> buffers{};
  std::vector<Workspace> workspaces{};
  std::uint64_t epoch = 0;
  Batch batch{};
  Ledger ledger{};
  core::Seconds waited{};
  std::optional<Pipeline> pipeline{};  ///< last: its threads end first
};

Loader::State::State(const runtime::Communicator& world, const SetSpec& set_spec, std::uint64_t n_set_samples,
                     const LoaderOptions& checked_options, std::vector<std::uint64_t> block_starts)
    : options{checked_options},
      spec{set_spec},
      n_samples{n_set_samples},
      augment{spec, options.augment},
      sampler{n_samples, options.sampler, std::move(block_starts)},
      plan{batch_plan(options, n_samples, world.rank(), world.n_ranks())},
      y_dtype{options.y_dtype.value_or(spec.y.dtype)},
      keeps_pixels{data::keeps_pixels(options, augment)},
      x_bytes{(keeps_pixels ? *augment.pixels() : augment.output()).bytes()},
      y_bytes{spec.y.n_elements() * core::size_of(y_dtype)},
      n_threads{options.threads < 0 ? std::min(most_threads, runtime::spare_cores(world))
                                    : static_cast<std::size_t>(options.threads)},
      n_slots{n_threads > 0 ? static_cast<std::size_t>(options.batches_ahead) + 1 : 1} {
  if (n_threads == 0 || augment.is_identity()) return;
  const std::uint64_t worthwhile = plan.most() * x_bytes / least_piece_bytes;
  n_pieces = std::clamp<std::uint64_t>(worthwhile, 1, 2 * n_threads);
}

void Loader::State::open(std::unique_ptr<Store> opened) {
  store = std::move(opened);
  workspaces.resize(n_threads + 1);
  for (Workspace& workspace : workspaces) workspace.scratch.resize(augment.scratch_bytes());
  pipeline.emplace(n_threads, n_slots, n_pieces, [this](const Pipeline::Piece& piece) { make(piece); });
}

void Loader::State::make_buffers() {
  const auto most = static_cast<std::size_t>(plan.most());
  buffers.resize(n_slots);
  for (BatchBuffer& buffer : buffers) {
    buffer.x = runtime::Buffer{{most * x_bytes}, runtime::Memory::pinned};
    buffer.y = runtime::Buffer{{most * y_bytes}, runtime::Memory::pinned};
    buffer.ids.resize(most);
    if (keeps_pixels) buffer.views.resize(most);
  }
}

std::uint64_t Loader::State::id_at(const Share& share, std::uint64_t index) const {
  const std::uint64_t position = share.first + index * share.stride;
  return sampler.at(position < n_samples ? position : position % n_samples);
}

void Loader::State::make(const Pipeline::Piece& piece) {
  Share share = plan.share(piece.batch);
  if (options.is_repeated) share.first = plan.share(0).first;
  const std::uint64_t begin = share.n * piece.number / n_pieces, end = share.n * (piece.number + 1) / n_pieces;
  const auto first = static_cast<std::size_t>(begin), n = static_cast<std::size_t>(end - begin);
  BatchBuffer& buffer = buffers[piece.slot];
  Workspace& workspace = workspaces[piece.worker];
  if (options.is_repeated && std::exchange(buffer.n, share.n) == share.n) return;

  const std::span ids = std::span{buffer.ids}.subspan(first, n);
  for (std::size_t i = 0; i < n; ++i) ids[i] = id_at(share, begin + i);
  store->fetch({.batch = piece.batch, .first = begin, .ids = ids}, workspace.fetched);

  if (augment.is_identity()) point_to(buffer, workspace.fetched);
  const std::span<const StoredSample> samples = workspace.fetched.samples;
  if (buffer.x_there.empty())
    make_x(samples, ids, buffer.x.bytes().subspan(first * x_bytes, n * x_bytes),
           keeps_pixels ? std::span{buffer.views}.subspan(first, n) : std::span<ImageView>{}, workspace);
  if (buffer.y_there.empty()) make_y(samples, buffer.y.bytes().subspan(first * y_bytes, n * y_bytes));
}

// Points to samples in the store's memory that are already in the delivered form, without a copy.
void Loader::State::point_to(BatchBuffer& buffer, Fetched& fetched) const {
  buffer.x_there = buffer.y_there = {};
  buffer.owners.clear();
  if (fetched.owners.empty()) return;
  buffer.x_there = joined(fetched.samples, &StoredSample::x);
  if (y_dtype == spec.y.dtype) buffer.y_there = joined(fetched.samples, &StoredSample::y);
  if (!buffer.x_there.empty() || !buffer.y_there.empty()) buffer.owners.swap(fetched.owners);
}

void Loader::State::make_x(std::span<const StoredSample> samples, std::span<const std::uint64_t> ids,
                           std::span<std::byte> x, std::span<ImageView> views, Workspace& workspace) const {
  if (augment.is_elementwise())
    if (const auto all = joined(samples, &StoredSample::x); !all.empty())
      return augment.apply(all, 0, 0, epoch, 0, x, workspace.scratch);
  for (std::size_t i = 0; i < std::min(samples.size(), prefetch_distance); ++i) prefetch(samples[i].x);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i + prefetch_distance < samples.size()) prefetch(samples[i + prefetch_distance].x);
    apply(samples[i], ids[i], x.subspan(i * x_bytes, x_bytes), keeps_pixels ? &views[i] : nullptr, workspace);
  }
}

void Loader::State::make_y(std::span<const StoredSample> samples, std::span<std::byte> y) const {
  if (const auto all = joined(samples, &StoredSample::y); !all.empty()) return convert(spec.y.dtype, all, y_dtype, y);
  for (std::size_t i = 0; i < samples.size(); ++i)
    convert(spec.y.dtype, samples[i].y, y_dtype, y.subspan(i * y_bytes, y_bytes));
}

// `view`: for an image whose pixels are kept, else null.
void Loader::State::apply(const StoredSample& sample, std::uint64_t id, std::span<std::byte> out, ImageView* view,
                          Workspace& workspace) const {
  const auto make = [&](std::span<const std::byte> x, std::uint64_t height, std::uint64_t width) {
    if (view == nullptr) return augment.apply(x, height, width, epoch, id, out, workspace.scratch);
    *view = augment.take(x, height, width, epoch, id, out, workspace.scratch);
  };
  if (!spec.is_encoded()) return make(sample.x, 0, 0);
  try {
    const Image image = decode_image(sample.x, n_rgb);
    make(image.pixels, image.height, image.width);
  } catch (const ImageError& error) {
    fail_damaged(fmt::format("sample {} cannot be decoded: {}", id, error.reason), set->folder());
  }
}

Loader::Loader(const runtime::Communicator& world, std::shared_ptr<const ShardSet> set, LoaderOptions options) {
  options = checked(std::move(options));
  std::vector<std::uint64_t> starts;
  if (options.sampler.order == Order::blocked) starts = block_starts(*set);
  state_ = std::make_unique<State>(world, set->spec(), set->n_samples(), options, std::move(starts));
  State& s = *state_;
  s.is_cached = decide_cache(world, options.cache, *set);
  s.open(make_store(world, set, options, s.is_cached, s.n_threads, s.n_slots,
                    [&s](std::uint64_t number, std::vector<std::uint64_t>& ids) {
                      const Share share = s.plan.share(number);
                      for (std::uint64_t i = 0; i < share.n; ++i) ids.push_back(s.id_at(share, i));
                    }));
  s.set = std::move(set);
  s.make_buffers();
}

Loader::Loader(const runtime::Communicator& world, std::unique_ptr<Source> source, std::size_t split,
               LoaderOptions options) {
  options = checked(std::move(options));
  if (options.sampler.order == Order::blocked) options.sampler.order = Order::keyed;
  state_ = std::make_unique<State>(world, source->spec(), source->splits()[split].n_samples, options);
  state_->open(make_synthetic_store(std::move(source), split));
}

Loader::~Loader() = default;
Loader::Loader(Loader&&) noexcept = default;
const Augment& Loader::augment() const noexcept { return state_->augment; }
bool Loader::keeps_pixels() const noexcept { return state_->keeps_pixels; }
std::uint64_t Loader::n_batches() const noexcept { return state_->plan.n_batches(); }
std::uint64_t Loader::most() const noexcept { return state_->plan.most(); }

void Loader::begin_epoch(std::uint64_t epoch, std::uint64_t first) {
  core::require(first <= n_batches(), "an epoch resumes at one of its batches");
  state_->pipeline->stop();
  if (state_->buffers.empty()) state_->make_buffers();
  // A repeated batch is that of epoch 0, wherever a run resumes.
  state_->epoch = state_->options.is_repeated ? 0 : epoch;
  state_->sampler.begin_epoch(state_->epoch);
  state_->ledger = {};
  state_->store->begin(first, n_batches());
  state_->pipeline->start(first, n_batches());
}

void Loader::forget() {
  state_->pipeline->stop();
  state_->store->forget();
}

const Batch* Loader::next() {
  State& s = *state_;
  const core::Stopwatch watch;
  const auto taken = s.pipeline->take();
  s.waited.value += watch.elapsed().value;
  if (!taken) return nullptr;
  const Share share = s.plan.share(taken->batch);
  const auto n = static_cast<std::size_t>(share.n);
  const BatchBuffer& buffer = s.buffers[taken->slot];
  s.batch = {.number = taken->batch,
             .n_global = share.n_global,
             .n = share.n,
             .x = buffer.x_there.empty() ? buffer.x.bytes().first(n * s.x_bytes) : buffer.x_there,
             .y = buffer.y_there.empty() ? buffer.y.bytes().first(n * s.y_bytes) : buffer.y_there,
             .ids = std::span{buffer.ids}.first(n)};
  if (s.keeps_pixels) {
    const std::vector<std::uint64_t>& shape = s.augment.pixels()->shape;
    s.batch.images = Images{.height = static_cast<int>(shape[0]),
                            .width = static_cast<int>(shape[1]),
                            .n_channels = static_cast<int>(shape[2]),
                            .levels = s.augment.levels(),
                            .views = std::span{buffer.views}.first(n)};
  }
  for (const std::uint64_t id : s.batch.ids) s.ledger.add(id);
  return &s.batch;
}

LoaderStats Loader::stats() const {
  LoaderStats stats{.data_wait_ms = state_->waited.value * 1e3,
                    .mixing = state_->sampler.mixing(),
                    .is_cached = state_->is_cached,
                    .threads = static_cast<int>(state_->n_threads)};
  if (!state_->set) return stats;
  const ReadCounters& counters = state_->set->counters();
  stats.bytes_read = counters.bytes;
  stats.n_chunks = counters.n_chunks;
  stats.n_crc_failures = counters.n_crc_failures;
  return stats;
}

const Ledger& Loader::ledger() const noexcept { return state_->ledger; }
Ledger Loader::ledger_before(std::uint64_t epoch, std::uint64_t batch) {
  state_->pipeline->stop();
  state_->sampler.begin_epoch(epoch);
  Ledger ledger;
  while (batch-- > 0)
    for (Share share = state_->plan.share(batch); share.n > 0; --share.n) ledger.add(state_->id_at(share, share.n - 1));
  return ledger;
}

}  // namespace lockstep::data
