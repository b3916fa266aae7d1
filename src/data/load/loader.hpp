// Batches of samples, ahead of their use: the trainer's only view of the data.
// Invariant: which samples make up a batch is the sampler's order and the batch size alone; memory is bounded; every
// batch is delivered or an error is thrown, on the thread that asks.
// Used by `lockstep shard bench` and the trainer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/units.hpp"
#include "data/augment/augment.hpp"
#include "data/format/source.hpp"
#include "data/load/batch.hpp"
#include "data/load/batch_plan.hpp"
#include "data/load/ledger.hpp"
#include "data/load/sampler.hpp"
#include "data/read/shard_set.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::data {

/// auto: in memory once per node if it fits into a quarter of what is free, else read as needed. Changes speed, never
/// order.
enum class Cache { automatic, none, node };
inline constexpr std::array<Cache, 3> all_caches{Cache::automatic, Cache::none, Cache::node};
[[nodiscard]] std::string_view name(Cache cache) noexcept;  ///< "auto", "none", "node"

struct LoaderOptions {
  std::uint64_t global_batch = 64;  ///< samples of all ranks together
  SamplerOptions sampler{};
  AugmentOptions augment{};
  std::optional<core::DType> y_dtype{};  ///< of labels: float32, bfloat16 or int64; nothing: as stored
  Cache cache = Cache::automatic;
  int threads = -1;  ///< decoding beside the caller; 0: inline; -1: the spare cores of this rank, at most 8
  std::uint64_t batches_ahead = 3;  ///< the bound of the queue
  bool drop_last = false;           ///< leave out the last, smaller batch
  bool is_evaluation = false;       ///< sequential; each rank takes one contiguous range of the set
  /// The first batch of epoch 0 is made, without threads, and delivered again and again: what is left then is not data.
  bool is_repeated = false;
  /// Images of so many channels at most stay pixels of uint8 (Batch::images) where Augment has them.
  std::uint64_t most_pixel_channels = 0;
  /// What stays together where a batch is dealt, and by how many ranks: see BatchPlan::Options.
  std::uint64_t unit = 1, n_together = 1;
};

/// How batches of a set of `n_samples` are dealt.
[[nodiscard]] BatchPlan batch_plan(const LoaderOptions& options, std::uint64_t n_samples, int rank,
                                   int n_ranks) noexcept;

/// Whether batches are of pixels.
[[nodiscard]] bool keeps_pixels(const LoaderOptions& options, const Augment& augment) noexcept;

struct LoaderStats {
  double data_wait_ms = 0;       ///< time next() kept its caller waiting
  std::uint64_t bytes_read = 0;  ///< as stored
  std::uint64_t n_chunks = 0;
  std::uint64_t n_crc_failures = 0;
  double mixing = 1;
  bool is_cached = false;
  int threads = 0;
};

class Loader {
 public:
  /// Collective. Throws core::Error as ShardSet and Augment do.
  Loader(const runtime::Communicator& world, std::shared_ptr<const ShardSet> set, LoaderOptions options);
  /// Collective. Of split number `split` of a source of data/synth/: nothing is cached, and as there are no blocks the
  /// order blocked is keyed. Batches get their memory in the first epoch: no set on disk bounds their size. Throws
  /// core::Error as Augment does.
  Loader(const runtime::Communicator& world, std::unique_ptr<Source> source, std::size_t split, LoaderOptions options);
  ~Loader();
  Loader(Loader&&) noexcept;

  [[nodiscard]] const Augment& augment() const noexcept;
  [[nodiscard]] bool keeps_pixels() const noexcept;
  /// Steps of an epoch, the same on all ranks.
  [[nodiscard]] std::uint64_t n_batches() const noexcept;
  /// Samples of this rank in a batch, at most.
  [[nodiscard]] std::uint64_t most() const noexcept;
  /// From batch `first` of `epoch` on, as if those before had been asked for; but the ledger is of what follows.
  void begin_epoch(std::uint64_t epoch, std::uint64_t first = 0);
  /// Valid until the next call; nullptr after the last batch.
  [[nodiscard]] const Batch* next();
  /// Ends the epoch and keeps nothing of what was read but a cached set (for cold measurements).
  void forget();
  [[nodiscard]] LoaderStats stats() const;
  /// Of the samples this rank has delivered since begin_epoch.
  [[nodiscard]] const Ledger& ledger() const noexcept;
  /// Returns the ledger of this rank's samples in the batches of `epoch` before `batch`. It reads nothing and does not
  /// begin the epoch. Not for a batch that is repeated.
  [[nodiscard]] Ledger ledger_before(std::uint64_t epoch, std::uint64_t batch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::data
