#include "parallel/bucket_plan.hpp"

namespace lockstep::parallel {
namespace {

std::size_t bytes_of(const Slot& slot) noexcept { return slot.slice.count * sizeof(float); }

/// The begin of the last bucket: the last slot, or as many slots earlier as the size allows.
std::size_t last_bucket_begin(std::span<const Slot> slots, std::size_t limit) noexcept {
  std::size_t begin = slots.size() - 1;
  std::size_t bytes = bytes_of(slots[begin]);
  while (begin > 0 && bytes + bytes_of(slots[begin - 1]) <= limit) bytes += bytes_of(slots[--begin]);
  return begin;
}

/// The first slot after `begin` that makes the bytes since `begin` exceed `limit`.
std::size_t bucket_end(std::span<const Slot> slots, std::size_t begin, std::size_t limit) noexcept {
  std::size_t end = begin + 1;
  std::size_t bytes = bytes_of(slots[begin]);
  while (end < slots.size() && bytes + bytes_of(slots[end]) <= limit) bytes += bytes_of(slots[end++]);
  return end;
}

}  // namespace

std::vector<core::Slice> plan_buckets(std::span<const Slot> slots, const BucketOptions& options) {
  require_ordered(slots);
  std::vector<core::Slice> buckets;
  if (slots.empty()) return buckets;
  const std::size_t last = last_bucket_begin(slots, options.last.value);
  std::size_t begin = 0;
  std::size_t offset = 0;
  while (begin < slots.size()) {
    const std::size_t limit = buckets.empty() ? options.first.value : options.target.value;
    const std::size_t end = begin < last ? bucket_end(slots.first(last), begin, limit) : slots.size();
    const std::size_t end_offset = end < slots.size() ? slots[end].slice.offset : arena_elements(slots);
    buckets.push_back({offset, end_offset - offset});
    begin = end;
    offset = end_offset;
  }
  return buckets;
}

}  // namespace lockstep::parallel
