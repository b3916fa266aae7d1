// Where the loader gets samples as they are stored: from memory shared by the ranks of a node, from the shards, or made
// on the spot.
// Invariant: every byte read was compared with its check sum; which store it is changes speed, never content.
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

/// What one thread fetches into; kept from call to call, so that memory is.
struct Fetched {
  std::vector<StoredSample> samples{};                ///< in the order of the ids; valid until the next fetch
  std::vector<std::shared_ptr<const void>> owners{};  ///< of what `samples` point into, where threads share it
  std::vector<std::byte> x{};  ///< what `samples` point to, if it is neither that nor the store's
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
  /// Batches [first, end) are what will be asked for, about in their order; while nobody fetches.
  virtual void begin(std::uint64_t /*first*/, std::uint64_t /*end*/) {}
  /// Called by several threads at once, each with a `fetched` of its own.
  virtual void fetch(const Wanted& wanted, Fetched& fetched) = 0;
  /// Lets go of what it keeps of earlier calls, if it reads as needed; while nobody fetches.
  virtual void forget() noexcept {}
};

/// How a streaming store reads.
struct StreamingOptions {
  /// Whole blocks, the last `n_blocks` of which are kept; else only what is asked for.
  bool by_block = false;
  std::size_t n_blocks = 4;
  std::size_t n_threads = 1;   ///< that fetch at once
  bool is_sequential = false;  ///< blocks are asked for in their order
};

/// Reads from the shards what is asked for, in bounded memory.
[[nodiscard]] std::unique_ptr<Store> make_streaming_store(std::shared_ptr<const ShardSet> set,
                                                          const StreamingOptions& options);

/// Appends the ids of this rank's share of a batch, in their order.
using IdsOf = std::function<void(std::uint64_t batch, std::vector<std::uint64_t>& ids)>;

/// How many samples a gathering store reads at a time; 0 where that does not pay: samples are too large, or too few of
/// them lie close enough to be read together.
[[nodiscard]] std::uint64_t gathered_samples(const ShardSet& set);

/// For random order: reads `n_samples` ahead at a time, in the order in which they lie in the shards, so that each part
/// of a file is read for many samples instead of one. At most two times as many are in memory (64 MiB together).
/// Batches asked for at the same time are at most `n_batches` apart.
[[nodiscard]] std::unique_ptr<Store> make_gathering_store(std::shared_ptr<const ShardSet> set, std::uint64_t n_samples,
                                                          std::uint64_t n_batches, IdsOf ids_of);

/// Makes samples of split number `split` when they are asked for. `source`: of data/synth/, as threads read it at once.
[[nodiscard]] std::unique_ptr<Store> make_synthetic_store(std::unique_ptr<Source> source, std::size_t split);

/// What the whole split takes in memory; an upper bound for encoded sets.
[[nodiscard]] core::Bytes cached_bytes(const ShardSet& set);

/// Collective: the whole split in memory of each node, read once by its ranks together, `n_threads` threads each.
/// Its destructor is collective, too.
[[nodiscard]] std::unique_ptr<Store> make_cached_store(const runtime::Communicator& world, const ShardSet& set,
                                                       std::size_t n_threads);

}  // namespace lockstep::data
