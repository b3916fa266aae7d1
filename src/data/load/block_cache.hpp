// The most recently read blocks, shared by threads: each is read once, however many threads request it at the same
// time.
// Invariant: at most `capacity` blocks are kept; a block in use stays until its user releases it.
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
  /// Fills `block`, which may have the memory of an earlier one, because new memory costs as much as reading into it.
  using Read = std::function<void(std::uint64_t number, Block& block)>;

  BlockCache(std::size_t capacity, Read read);

  /// Rethrows a read error to all threads that wait for this block; the next request tries again.
  [[nodiscard]] std::shared_ptr<const Block> get(std::uint64_t number);

  /// Whether a thread is currently reading it.
  [[nodiscard]] bool is_being_read(std::uint64_t number);
  /// Reads the block and returns true, unless it is there or being read. Leaves read errors to get().
  bool prefetch(std::uint64_t number);
  /// Drops all blocks. No other thread may call meanwhile.
  void clear() noexcept;

 private:
  using Shared = std::shared_ptr<Block>;
  struct Entry {
    std::shared_future<Shared> block;
    std::list<std::uint64_t>::iterator place;
    bool is_awaited = false;  ///< a thread requested it before it was read, and may take it at any time

    [[nodiscard]] bool is_ready() const { return block.wait_for(std::chrono::seconds{0}) == std::future_status::ready; }
  };

  [[nodiscard]] Shared evict();
  [[nodiscard]] Shared read_into(std::promise<Shared> promise, std::uint64_t number, Shared block);

  const std::size_t capacity_;
  const Read read_;
  std::mutex mutex_;                 // guards the two below
  std::list<std::uint64_t> recent_;  // most recently used first
  std::unordered_map<std::uint64_t, Entry> entries_;
};

}  // namespace lockstep::data
