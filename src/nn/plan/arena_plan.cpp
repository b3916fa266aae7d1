#include "nn/plan/arena_plan.hpp"

#include <algorithm>
#include <numeric>

#include "core/slice.hpp"

namespace lockstep::nn {
namespace {

bool is_needed(const Lifetime& buffer) { return buffer.n_bytes > 0 && buffer.first <= buffer.last; }

bool lives(const Lifetime& buffer, int first, int last) {
  const auto is_within = [&](int time) { return first <= time && time <= last; };
  if (buffer.is_forgotten) return is_within(buffer.first) || is_within(buffer.last);
  return buffer.first <= last && first <= buffer.last;
}

bool live_together(const Lifetime& a, const Lifetime& b) {
  return b.is_forgotten ? lives(a, b.first, b.first) || lives(a, b.last, b.last) : lives(a, b.first, b.last);
}

}  // namespace

ArenaPlan plan_arena(std::span<const Lifetime> buffers, std::size_t alignment) {
  ArenaPlan plan{std::vector<std::size_t>(buffers.size(), 0), 0};
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].n_bytes > buffers[b].n_bytes; });
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    if (!is_needed(buffers[i])) continue;
    const std::size_t n_bytes = core::round_up(buffers[i].n_bytes, alignment);
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      if (!live_together(buffers[i], buffers[other])) continue;
      if (offset + n_bytes <= plan.offsets[other]) break;
      offset = std::max(offset, plan.offsets[other] + core::round_up(buffers[other].n_bytes, alignment));
    }
    plan.offsets[i] = offset;
    plan.n_bytes = std::max(plan.n_bytes, offset + n_bytes);
    const auto after = std::upper_bound(placed.begin(), placed.end(), offset,
                                        [&](std::size_t at, std::size_t other) { return at < plan.offsets[other]; });
    placed.insert(after, i);
  }
  return plan;
}

std::size_t Buffers::add(std::size_t n_bytes) {
  lifetimes_.push_back({n_bytes});
  return lifetimes_.size() - 1;
}

void Buffers::use(std::size_t buffer, int time) {
  Lifetime& lifetime = lifetimes_[buffer];
  const bool is_first = lifetime.last < lifetime.first;
  lifetime.first = is_first ? time : std::min(lifetime.first, time);
  lifetime.last = is_first ? time : std::max(lifetime.last, time);
}

}  // namespace lockstep::nn
