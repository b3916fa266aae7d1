#include "data/load/block_cache.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::data {

BlockCache::BlockCache(std::size_t capacity, Read read)
    : capacity_{std::max<std::size_t>(1, capacity)}, read_{std::move(read)} {}

std::shared_ptr<const Block> BlockCache::get(std::uint64_t number) {
  std::unique_lock lock{mutex_};
  if (const auto found = entries_.find(number); found != entries_.end()) {
    Entry& entry = found->second;
    recent_.splice(recent_.begin(), recent_, entry.place);
    if (entry.is_ready()) return entry.block.get();
    entry.is_awaited = true;
    const std::shared_future<Shared> block = entry.block;
    lock.unlock();
    return block.get();
  }
  Shared memory = entries_.size() >= capacity_ ? evict() : nullptr;
  std::promise<Shared> promise;
  recent_.push_front(number);
  entries_.emplace(number, Entry{promise.get_future().share(), recent_.begin()});
  lock.unlock();
  return read_into(std::move(promise), number, std::move(memory));
}

bool BlockCache::is_being_read(std::uint64_t number) {
  const std::lock_guard lock{mutex_};
  const auto found = entries_.find(number);
  return found != entries_.end() && !found->second.is_ready();
}

bool BlockCache::prefetch(std::uint64_t number) try {
  {
    const std::lock_guard lock{mutex_};
    if (entries_.contains(number)) return false;
  }
  (void)get(number);
  return true;
} catch (...) {
  return true;
}

void BlockCache::clear() noexcept {
  entries_.clear();
  recent_.clear();
}

/// Under the lock: drops the least recently used block. Returns it if nothing else uses it, else nullptr.
BlockCache::Shared BlockCache::evict() {
  const auto oldest = entries_.find(recent_.back());
  const Entry entry = std::move(oldest->second);
  recent_.pop_back();
  entries_.erase(oldest);
  if (entry.is_awaited || !entry.is_ready()) return nullptr;
  try {
    Shared block = entry.block.get();
    return block.use_count() == 2 ? block : nullptr;  // this one and the future's
  } catch (...) {
    return nullptr;  // it could not be read
  }
}

BlockCache::Shared BlockCache::read_into(std::promise<Shared> promise, std::uint64_t number, Shared block) {
  try {
    if (!block) block = std::make_shared<Block>();
    read_(number, *block);
    promise.set_value(block);
    return block;
  } catch (...) {
    {
      const std::lock_guard lock{mutex_};
      if (const auto found = entries_.find(number); found != entries_.end()) {
        recent_.erase(found->second.place);
        entries_.erase(found);
      }
    }
    promise.set_exception(std::current_exception());
    throw;
  }
}

}  // namespace lockstep::data
