#include "parallel/sharding.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "comm/collective.hpp"

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

/// Adds the buckets of `slots`, which together are [offset, end) of the arena.
void add_buckets(std::span<const Slot> slots, const BucketOptions& options, std::size_t offset, std::size_t end,
                 std::vector<core::Slice>& buckets) {
  const std::size_t last = last_bucket_begin(slots, options.last.value);
  for (std::size_t begin = 0, next = 0; begin < slots.size(); begin = next) {
    const std::size_t limit = begin == 0 ? options.first.value : options.target.value;
    next = begin < last ? bucket_end(slots.first(last), begin, limit) : slots.size();
    const std::size_t next_offset = next < slots.size() ? slots[next].slice.offset : end;
    buckets.push_back({offset, next_offset - offset});
    offset = next_offset;
  }
}

/// Whether node k holds the k-th run of ranks, with runs of equal length.
bool is_in_equal_blocks(const std::vector<int>& nodes, std::size_t n_nodes) {
  if (nodes.size() % n_nodes != 0) return false;
  const std::size_t block = nodes.size() / n_nodes;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    if (nodes[rank] != static_cast<int>(rank / block)) return false;
  return true;
}

/// Returns the place nearest to `at` in the arena where a tensor begins or may be cut, or one in the gap behind it.
std::size_t nearest_cut(std::span<const Slot> slots, std::size_t at) noexcept {
  const auto after = std::ranges::upper_bound(slots, at, {}, [](const Slot& slot) { return slot.slice.offset; });
  if (after == slots.begin()) return at;
  const Slot& slot = *std::prev(after);
  const std::size_t length = cut_length(slot);
  const std::size_t cut = slot.slice.offset + (at - slot.slice.offset + length / 2) / length * length;
  return after == slots.end() ? cut : std::min(cut, after->slice.offset);
}

}  // namespace

std::vector<core::Slice> plan_buckets(std::span<const Slot> slots, const BucketOptions& options) {
  require_ordered(slots);
  std::vector<core::Slice> buckets;
  if (!slots.empty()) add_buckets(slots, options, 0, arena_elements(slots), buckets);
  return buckets;
}

std::vector<core::Slice> plan_unit_buckets(std::span<const Slot> slots, const BucketOptions& options) {
  require_ordered(slots);
  std::vector<core::Slice> buckets;
  std::size_t offset = 0;
  for (std::size_t begin = 0, end = 0; begin < slots.size(); begin = end) {
    while (end < slots.size() && slots[end].unit == slots[begin].unit) ++end;
    const std::size_t end_offset = end < slots.size() ? slots[end].slice.offset : arena_elements(slots);
    if (slots[begin].unit)
      buckets.push_back({offset, end_offset - offset});
    else
      add_buckets(slots.subspan(begin, end - begin), options, offset, end_offset, buckets);
    offset = end_offset;
  }
  return buckets;
}

Placement place(const std::vector<int>& nodes, bool is_deterministic) {
  Placement placement{.nodes = nodes, .n_nodes = 1 + *std::max_element(nodes.begin(), nodes.end()), .n_owners = 1};
  if (is_deterministic && !is_in_equal_blocks(nodes, static_cast<std::size_t>(placement.n_nodes))) {
    std::iota(placement.nodes.begin(), placement.nodes.end(), 0);
    placement.n_nodes = static_cast<int>(nodes.size());
  }
  std::vector<int> sizes(static_cast<std::size_t>(placement.n_nodes));
  for (const int node : placement.nodes) ++sizes[static_cast<std::size_t>(node)];
  placement.n_owners = *std::min_element(sizes.begin(), sizes.end());
  return placement;
}

std::size_t cut_length(const Slot& slot) noexcept {
  const std::size_t aligned = std::lcm(slot.block, alignment);
  return (block_elements + aligned - 1) / aligned * aligned;
}

Sharding::Sharding(std::vector<Slot> slots, std::vector<core::Slice> buckets, std::size_t n_owners, bool is_order_fixed,
                   std::size_t n_nodes)
    : slots_{std::move(slots)}, buckets_{std::move(buckets)}, n_nodes_{n_nodes}, slices_(n_owners * n_nodes) {
  require_ordered(slots_);
  const comm::Call call{.is_order_fixed = is_order_fixed && n_nodes_ == 1};
  for (const core::Slice& bucket : buckets_) {
    const std::size_t n_parts = is_divided(bucket) ? n_nodes_ : 1;  // of each owner's slice
    const std::vector<std::size_t> cuts = cut(bucket, n_owners * n_parts);
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const int owner = static_cast<int>(i / n_nodes_);
      const std::size_t part = call.index_of_part(owner, static_cast<int>(n_owners)) * n_parts + i % n_nodes_ % n_parts;
      slices_[i].push_back({cuts[part], cuts[part + 1] - cuts[part]});
    }
  }
}

bool Sharding::is_divided(const core::Slice& bucket) const noexcept {
  const auto has_rows_there = [&](const Slot& slot) {
    return slot.row_elements > 0 && !intersection(slot.slice, bucket).empty();
  };
  return n_nodes_ > 1 && std::ranges::none_of(slots_, has_rows_there);
}

/// Where the parts of `bucket` begin in the arena, and its end.
std::vector<std::size_t> Sharding::cut(const core::Slice& bucket, std::size_t n_parts) const {
  const comm::Call call{.collective = comm::Collective::reduce_scatter, .n_elements = bucket.count};
  std::vector<std::size_t> cuts{bucket.offset};
  for (std::size_t i = 1; i < n_parts; ++i) {
    const core::Slice part = call.part(static_cast<int>(i), static_cast<int>(n_parts));
    cuts.push_back(std::clamp(nearest_cut(slots_, bucket.offset + part.offset), cuts.back(), bucket.end()));
  }
  cuts.push_back(bucket.end());
  return cuts;
}

std::vector<std::optional<std::size_t>> Sharding::units() const {
  std::vector<std::optional<std::size_t>> units;
  for (const core::Slice& bucket : buckets_) {
    const auto first =
        std::ranges::find_if(slots_, [&](const Slot& slot) { return !intersection(slot.slice, bucket).empty(); });
    units.push_back(first == slots_.end() ? std::nullopt : first->unit);
  }
  return units;
}

std::size_t Sharding::bucket_of(std::size_t slot) const noexcept {
  const auto after = std::ranges::upper_bound(buckets_, slots_[slot].slice.offset, {}, &core::Slice::offset);
  return static_cast<std::size_t>(after - buckets_.begin()) - 1;
}

std::size_t Sharding::n_complete(std::size_t slot) const noexcept {
  const std::size_t end = slot + 1 < slots_.size() ? slots_[slot + 1].slice.offset : n_elements();
  const auto first_incomplete = std::ranges::upper_bound(buckets_, end, {}, &core::Slice::end);
  return static_cast<std::size_t>(first_incomplete - buckets_.begin());
}

std::span<const core::Slice> Sharding::slices_of(std::size_t owner) const noexcept {
  return owner < slices_.size() ? std::span<const core::Slice>{slices_[owner]} : std::span<const core::Slice>{};
}

std::vector<Share> Sharding::shares_of(std::size_t owner, std::size_t part) const {
  std::vector<Share> shares;
  if (owner >= n_owners()) return shares;
  const auto of_part = [&](std::size_t k) { return slices_of(owner * n_nodes_ + k); };
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const std::size_t begin = of_part(0)[b].offset, end = of_part(n_nodes_ - 1)[b].end();
    Share& share = shares.emplace_back(Share{.summed = {begin, end - begin}, .updated = of_part(part)[b]});
    if (!is_divided(buckets_[b])) continue;
    for (std::size_t k = 0; k < n_nodes_; ++k) share.cuts.push_back(of_part(k)[b].offset - begin);
    share.cuts.push_back(end - begin);
  }
  return shares;
}

Sharding make_sharding(Strategy strategy, std::vector<Slot> slots, const BucketOptions& buckets,
                       const Placement& placement) {
  std::set<std::size_t> with_rows;
  for (const Slot& slot : slots)
    if (slot.unit && slot.row_elements > 0) with_rows.insert(*slot.unit);
  for (Slot& slot : slots)
    if (slot.unit && with_rows.contains(*slot.unit)) slot.unit.reset();
  return {slots, divides_gradients(strategy) ? plan_unit_buckets(slots, buckets) : plan_buckets(slots, buckets),
          static_cast<std::size_t>(placement.n_owners), false,
          static_cast<std::size_t>(divides_states(strategy) ? placement.n_nodes : 1)};
}

std::vector<Piece> blocks_in(std::span<const Slot> slots, const core::Slice& slice) {
  std::vector<Piece> blocks;
  for (const auto& [slot, whole] : pieces_in(slots, slice)) {
    const std::size_t length = cut_length(slots[slot]);
    for (std::size_t at = whole.offset; at < whole.end(); at += length) {
      const std::size_t n = std::min(length, whole.end() - at);
      const std::size_t n_blocks = std::max<std::size_t>(1, n / block_elements);
      for (std::size_t i = 0; i < n_blocks; ++i) {
        const core::Slice block = core::partition(n, n_blocks, i, alignment);
        blocks.push_back({slot, {.offset = at + block.offset, .count = block.count}});
      }
    }
  }
  return blocks;
}

}  // namespace lockstep::parallel
