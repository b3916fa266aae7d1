#include "data/block_cache.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::data {

BlockCache::BlockCache(std::size_t capacity, Read read)
    : capacity_{std::max<std::size_t>(1, capacity)}, read_{std::move(read)} {}

std::shared_ptr<const Block> BlockCache::get(std::uint64_t number) {
  std::unique_lock lock{mutex_};
  if (const auto found = entries_.find(number); found != entries_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second.place);
    const std::shared_future<Shared> block = found->second.block;
    lock.unlock();
    return block.get();
  }
  if (entries_.size() >= capacity_) {
    entries_.erase(recent_.back());
    recent_.pop_back();
  }
  std::promise<Shared> promise;
  recent_.push_front(number);
  entries_.emplace(number, Entry{promise.get_future().share(), recent_.begin()});
  lock.unlock();
  return read_into(std::move(promise), number);
}

std::shared_ptr<const Block> BlockCache::read_into(std::promise<Shared> promise, std::uint64_t number) {
  try {
    auto block = std::make_shared<const Block>(read_(number));
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
