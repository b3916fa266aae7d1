// The loader's source of samples as they are stored: memory shared by the ranks of a node, the shards, or a
// synthesizer.
// Invariant: every byte read was compared with its check sum; the choice of store changes speed, never content.
// Used by data/load/loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "data/format/source.hpp"
#include "data/read/block.hpp"
#include "data/read/shard_set.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::data {

/// The result of a thread's fetches; kept between calls to reuse its memory.
struct Fetched {
  std::vector<StoredSample> samples{};                ///< in the order of the ids; valid until the next fetch
  std::vector<std::shared_ptr<const void>> owners{};  ///< of the memory that `samples` point into, if threads share it
  std::vector<std::byte> x{};  ///< what `samples` point to, if it is neither shared nor the store's
  std::vector<std::byte> y{};
};

/// Samples [first, first + ids.size()) of this rank's share of a batch.
struct Wanted {
  std::uint64_t batch = 0;
  std::uint64_t first = 0;
  std::span<const std::uint64_t> ids{};
};

class Store {
 public:
  virtual ~Store() = default;
  /// Batches [first, end) will be requested, approximately in order; called while no thread fetches.
  virtual void begin(std::uint64_t /*first*/, std::uint64_t /*end*/) {}
  /// Called by several threads at once, each with its own `fetched`.
  virtual void fetch(const Wanted& wanted, Fetched& fetched) = 0;
  /// Drops what it keeps of earlier calls, if it reads as needed; called while no thread fetches.
  virtual void forget() noexcept {}
};

/// How a streaming store reads.
struct StreamingOptions {
  /// Reads whole blocks and keeps the last `n_blocks`; else reads only the requested samples.
  bool by_block = false;
  std::size_t n_blocks = 4;
  std::size_t n_threads = 1;   ///< that fetch at once
  bool is_sequential = false;  ///< blocks are requested in order
};

/// Reads requested samples from the shards, in bounded memory.
[[nodiscard]] std::unique_ptr<Store> make_streaming_store(std::shared_ptr<const ShardSet> set,
                                                          const StreamingOptions& options);

/// Appends the ids of this rank's share of a batch, in order.
using IdsOf = std::function<void(std::uint64_t batch, std::vector<std::uint64_t>& ids)>;

/// How many samples a gathering store reads at a time; 0 if that does not pay off: samples are too large, or too few
/// are close enough to be read together.
[[nodiscard]] std::uint64_t gathered_samples(const ShardSet& set);

/// For random order: reads `n_samples` ahead at a time, in the order of the shards, so that each part of a file is read
/// for many samples instead of one. At most twice as many are in memory (64 MiB together). Batches that are requested
/// at the same time are at most `n_batches` apart.
[[nodiscard]] std::unique_ptr<Store> make_gathering_store(std::shared_ptr<const ShardSet> set, std::uint64_t n_samples,
                                                          std::uint64_t n_batches, IdsOf ids_of);

/// Makes samples of split number `split` on request. `source` is from data/synth/, because several threads read it at
/// once.
[[nodiscard]] std::unique_ptr<Store> make_synthetic_store(std::unique_ptr<Source> source, std::size_t split);

/// The memory that the whole split needs; an upper bound for encoded sets.
[[nodiscard]] core::Bytes cached_bytes(const ShardSet& set);

/// Collective: the whole split in memory of each node; its ranks read it once together, with `n_threads` threads each.
/// The destructor is also collective.
[[nodiscard]] std::unique_ptr<Store> make_cached_store(const runtime::Communicator& world, const ShardSet& set,
                                                       std::size_t n_threads);

}  // namespace lockstep::data
