#include "parallel/device_division.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace lockstep::parallel {
namespace {

/// One slot for each unit, with its padding: buckets end where units do, so that their parts are equal.
std::vector<Slot> units_as_slots(std::span<const Slot> slots) {
  std::vector<Slot> units;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    core::require(slots[i].unit.has_value() || i + 1 == slots.size() || !slots[i + 1].unit.has_value(),
                  "slots in units precede the others");
    if (!slots[i].unit) break;
    const std::size_t end = i + 1 < slots.size() ? slots[i + 1].slice.offset : slots[i].slice.end();
    const bool begins = i == 0 || slots[i - 1].unit != slots[i].unit;
    if (begins) units.push_back({.name = {}, .slice = {.offset = slots[i].slice.offset}});
    units.back().slice.count = end - units.back().slice.offset;
  }
  return units;
}

std::vector<core::Slice> buckets_of(std::span<const Slot> slots, std::span<const Slot> units,
                                    const BucketOptions& options) {
  std::vector<core::Slice> buckets = plan_buckets(units, options);
  const std::size_t end = arena_elements(units);
  if (end < arena_elements(slots)) buckets.push_back({end, arena_elements(slots) - end});
  return buckets;
}

/// The buckets, and how many of them are divided.
std::pair<std::vector<core::Slice>, std::size_t> plan_division(Strategy strategy, std::span<const Slot> slots,
                                                               const BucketOptions& options, std::size_t n_ranks) {
  if (!divides_states(strategy) || n_ranks == 1) return {plan_buckets(slots, options), 0};
  require_ordered(slots);
  const std::vector<Slot> units = units_as_slots(slots);
  return {buckets_of(slots, units, options), plan_buckets(units, options).size()};
}

}  // namespace

DeviceDivision::DeviceDivision(Strategy strategy, std::vector<Slot> slots, const BucketOptions& buckets,
                               std::size_t n_ranks)
    : sharding_{{}, {}, n_ranks} {
  auto [planned, n_divided] = plan_division(strategy, slots, buckets, n_ranks);
  n_divided_ = n_divided;
  sharding_ = Sharding{std::move(slots), std::move(planned), n_ranks};
}

std::vector<KeptSlice> DeviceDivision::updated_by(std::size_t rank) const {
  std::vector<KeptSlice> updated;
  std::size_t begin = 0;
  const auto add = [&](const core::Slice& slice) {
    updated.push_back({slice, begin});
    begin += slice.count;
  };
  for (const core::Slice& part : sharding_.slices_of(rank).first(n_divided_)) add(part);
  const std::size_t end = divides() ? sharding_.buckets()[n_divided_ - 1].end() : 0;
  if (end < sharding_.n_elements()) add({end, sharding_.n_elements() - end});
  return updated;
}

std::vector<std::size_t> DeviceDivision::cuts_of(std::size_t bucket) const {
  const std::size_t begin = sharding_.buckets()[bucket].offset;
  std::vector<std::size_t> cuts;
  bool are_equal = true;
  for (std::size_t rank = 0; rank < sharding_.n_owners(); ++rank) {
    const core::Slice& part = sharding_.slices_of(rank)[bucket];
    are_equal = are_equal && part.count == sharding_.slices_of(0)[bucket].count;
    cuts.push_back(part.offset - begin);
  }
  cuts.push_back(sharding_.buckets()[bucket].count);
  return are_equal ? std::vector<std::size_t>{} : cuts;
}

std::size_t n_elements(const std::vector<KeptSlice>& slices) noexcept {
  return slices.empty() ? 0 : slices.back().begin + slices.back().slice.count;
}

KeptElements count_kept(const DeviceDivision& division, bool has_weights) {
  const std::size_t n_all = division.sharding().n_elements();
  KeptElements kept{.gradients = n_all};
  for (std::size_t rank = 0; rank < division.sharding().n_owners(); ++rank)
    kept.updated = std::max(kept.updated, n_elements(division.updated_by(rank)));
  kept.parameters = has_weights ? kept.updated : n_all;
  return kept;
}

}  // namespace lockstep::parallel
