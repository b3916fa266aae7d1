// Where the loader gets samples as they are stored: from memory shared by the ranks of a node, or from the shards.
// Invariant: every byte handed out was compared with its check sum; which store it is changes speed, never content.
// Used by data/loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "data/block.hpp"
#include "data/shard_set.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::data {

/// What one thread fetches into; kept from call to call, so that memory is.
struct Fetched {
  std::vector<StoredSample> samples{};                 ///< in the order of the ids; valid until the next fetch
  std::vector<std::shared_ptr<const Block>> blocks{};  ///< what `samples` point into, where the store reads by block
  std::vector<std::byte> x{};                          ///< what `samples` point to, if it is not the store's own memory
  std::vector<std::byte> y{};
};

class Store {
 public:
  virtual ~Store() = default;
  /// Called by several threads at once, each with a `fetched` of its own.
  virtual void fetch(std::span<const std::uint64_t> ids, Fetched& fetched) const = 0;
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

/// What the whole split takes in memory; an upper bound for encoded sets.
[[nodiscard]] core::Bytes cached_bytes(const ShardSet& set);

/// Collective: the whole split in memory of each node, read once by its ranks together, `n_threads` threads each.
/// Its destructor is collective, too.
[[nodiscard]] std::unique_ptr<Store> make_cached_store(const runtime::Communicator& world, const ShardSet& set,
                                                       std::size_t n_threads);

}  // namespace lockstep::data
