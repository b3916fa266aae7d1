// Batches of samples, ahead of their use: the trainer's only view of the data.
// Invariant: the sampler's order and the batch size alone determine a batch; memory is bounded; every batch is
// delivered or an error is thrown, on the requesting thread.
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

/// auto: once per node in memory if it fits into a quarter of the free memory, else read as needed. Changes speed,
/// never order.
enum class Cache { automatic, none, node };
inline constexpr std::array<Cache, 3> all_caches{Cache::automatic, Cache::none, Cache::node};
[[nodiscard]] std::string_view name(Cache cache) noexcept;  ///< "auto", "none", "node"

struct LoaderOptions {
  std::uint64_t global_batch = 64;  ///< samples of all ranks together
  SamplerOptions sampler{};
  AugmentOptions augment{};
  std::optional<core::DType> y_dtype{};  ///< of labels: float32, bfloat16 or int64; nothing: as stored
  Cache cache = Cache::automatic;
  int threads = -1;  ///< that decode beside the caller; 0: inline; -1: the spare cores of this rank, at most 8
  std::uint64_t batches_ahead = 3;  ///< the bound of the queue
  bool drop_last = false;           ///< leave out the last, smaller batch
  bool is_evaluation = false;       ///< sequential; each rank takes one contiguous range of the set
  /// Makes the first batch of epoch 0, without threads, and delivers it repeatedly: the remaining time does not depend
  /// on data.
  bool is_repeated = false;
  /// Images of at most this many channels stay pixels of uint8 (Batch::images), if Augment supports that.
  std::uint64_t most_pixel_channels = 0;
  /// What stays together when a batch is divided, and over how many ranks: see BatchPlan::Options.
  std::uint64_t unit = 1, n_together = 1;
};

/// How batches of a set of `n_samples` are divided.
[[nodiscard]] BatchPlan batch_plan(const LoaderOptions& options, std::uint64_t n_samples, int rank,
                                   int n_ranks) noexcept;

/// Whether batches consist of pixels.
[[nodiscard]] bool keeps_pixels(const LoaderOptions& options, const Augment& augment) noexcept;

struct LoaderStats {
  double data_wait_ms = 0;       ///< time the caller of next() has waited
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
  /// Collective. For split number `split` of a source of data/synth/. Nothing is cached, and because there are no
  /// blocks, the order blocked becomes keyed. Batches get their memory in the first epoch, because no set on disk
  /// bounds their size. Throws core::Error as Augment does.
  Loader(const runtime::Communicator& world, std::unique_ptr<Source> source, std::size_t split, LoaderOptions options);
  ~Loader();
  Loader(Loader&&) noexcept;

  [[nodiscard]] const Augment& augment() const noexcept;
  [[nodiscard]] bool keeps_pixels() const noexcept;
  /// Steps of an epoch, the same on all ranks.
  [[nodiscard]] std::uint64_t n_batches() const noexcept;
  /// The greatest number of samples of this rank in a batch.
  [[nodiscard]] std::uint64_t most() const noexcept;
  /// Starts at batch `first` of `epoch`, as if all earlier ones had been delivered; but the ledger only covers later
  /// ones.
  void begin_epoch(std::uint64_t epoch, std::uint64_t first = 0);
  /// Valid until the next call; nullptr after the last batch.
  [[nodiscard]] const Batch* next();
  /// Ends the epoch and drops everything that was read, except a cached set (for cold measurements).
  void forget();
  [[nodiscard]] LoaderStats stats() const;
  /// The ledger of the samples that this rank has delivered since begin_epoch.
  [[nodiscard]] const Ledger& ledger() const noexcept;
  /// Returns the ledger of this rank's samples in the batches of `epoch` before `batch`. Reads nothing and does not
  /// begin the epoch. Not for a repeated batch.
  [[nodiscard]] Ledger ledger_before(std::uint64_t epoch, std::uint64_t batch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::data
