// The blocks read last, shared by threads: each is read once however many ask for it at the same time.
// Invariant: no more than `capacity` blocks are kept; one that is in use stays until its user lets go.
// Used by data/load/store_streaming.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "data/read/block.hpp"

namespace lockstep::data {

class BlockCache {
 public:
  /// Fills `block`, which may have the memory of an earlier one: fresh memory costs as much as reading into it.
  using Read = std::function<void(std::uint64_t number, Block& block)>;

  BlockCache(std::size_t capacity, Read read);

  /// Rethrows what reading throws, to all who wait for this block; the next to ask tries again.
  [[nodiscard]] std::shared_ptr<const Block> get(std::uint64_t number);

  /// Whether a thread is reading it.
  [[nodiscard]] bool is_being_read(std::uint64_t number);
  /// Reads it if it is neither there nor being read; false if so. What reading throws is left for get().
  bool prefetch(std::uint64_t number);
  /// Keeps nothing of what was read. Nobody else calls meanwhile.
  void clear() noexcept;

 private:
  using Shared = std::shared_ptr<Block>;
  struct Entry {
    std::shared_future<Shared> block;
    std::list<std::uint64_t>::iterator place;
    bool is_awaited = false;  ///< someone asked before it was read, and may take it at any time

    [[nodiscard]] bool is_ready() const { return block.wait_for(std::chrono::seconds{0}) == std::future_status::ready; }
  };

  [[nodiscard]] Shared evict();
  [[nodiscard]] Shared read_into(std::promise<Shared> promise, std::uint64_t number, Shared block);

  const std::size_t capacity_;
  const Read read_;
  std::mutex mutex_;                 // guards the two below
  std::list<std::uint64_t> recent_;  // used last first
  std::unordered_map<std::uint64_t, Entry> entries_;
};

}  // namespace lockstep::data
