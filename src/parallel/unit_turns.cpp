#include "parallel/unit_turns.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/error.hpp"

namespace lockstep::parallel {
namespace {

/// `begin`, `end`: by unit, ascending times of its first and last use in a pass.
UnitOrder order_by(std::span<const std::size_t> begin, std::span<const std::size_t> end) {
  UnitOrder order{.units = std::vector<std::size_t>(begin.size()),
                  .turns = std::vector<std::size_t>(begin.size()),
                  .ends = std::vector<std::size_t>(begin.size())};
  std::iota(order.units.begin(), order.units.end(), std::size_t{0});
  std::ranges::stable_sort(order.units, {}, [&](std::size_t unit) { return begin[unit]; });
  for (std::size_t turn = 0; turn < order.units.size(); ++turn) order.turns[order.units[turn]] = turn;
  for (std::size_t unit = 0; unit < begin.size(); ++unit) {
    const auto after =
        std::ranges::upper_bound(order.units, end[unit], {}, [&](std::size_t other) { return begin[other]; });
    order.ends[unit] = static_cast<std::size_t>(after - order.units.begin()) - 1;
  }
  return order;
}

/// Turns, both included.
struct TurnRange {
  std::size_t first = 0, last = 0;
};

bool turns_meet(const TurnRange& a, const TurnRange& b) noexcept { return a.first <= b.last && b.first <= a.last; }

TurnRange gathered_turns(const UnitOrder& order, std::size_t unit, std::size_t prefetch) noexcept {
  return {order.turns[unit] - std::min(order.turns[unit], prefetch), order.ends[unit]};
}

}  // namespace

UnitTurns::UnitTurns(std::span<const core::Slice> reads, std::size_t prefetch) : prefetch_{prefetch} {
  std::size_t n_nodes = 0;
  for (const core::Slice& read : reads) n_nodes = std::max(n_nodes, read.end());
  std::vector<std::size_t> first, last, first_backward, last_backward;
  for (const core::Slice& read : reads) {
    core::require(!read.empty(), "a node reads each unit");
    first.push_back(read.offset);
    last.push_back(read.end() - 1);
    first_backward.push_back(n_nodes - read.end());
    last_backward.push_back(n_nodes - 1 - read.offset);
  }
  forward_ = order_by(first, last);
  backward_ = order_by(first_backward, last_backward);
  std::size_t latest = 0;
  for (const std::size_t end : backward_.ends) complete_.push_back(latest = std::max(latest, end));
}

bool UnitTurns::parameters_meet(std::size_t a, std::size_t b) const noexcept {
  return std::ranges::any_of(std::array{false, true}, [&](bool is_backward) {
    const UnitOrder& passes = order(is_backward);
    return turns_meet(gathered_turns(passes, a, prefetch_), gathered_turns(passes, b, prefetch_));
  });
}

bool UnitTurns::gradients_meet(std::size_t a, std::size_t b) const noexcept {
  const auto written = [&](std::size_t unit) { return TurnRange{backward_.turns[unit], complete_[unit] + 1}; };
  return turns_meet(written(a), written(b));
}

BucketPlaces::BucketPlaces(std::vector<core::Slice> buckets) : buckets_{std::move(buckets)}, units_(buckets_.size()) {
  for (const core::Slice& bucket : buckets_) offsets_.push_back(bucket.offset);
  n_kept_ = n_elements_ = buckets_.empty() ? 0 : buckets_.back().end();
}

BucketPlaces::BucketPlaces(std::vector<core::Slice> buckets, std::vector<std::optional<std::size_t>> units,
                           const UnitsMeet& meet)
    : buckets_{std::move(buckets)}, units_{std::move(units)}, offsets_(buckets_.size()) {
  std::vector<std::size_t> pooled;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    if (units_[b]) {
      core::require(bucket_of(*units_[b]) == b, "each unit is one bucket");
      pooled.push_back(b);
      continue;
    }
    offsets_[b] = n_kept_;
    n_kept_ += core::round_up(buckets_[b].count, block_elements);
  }
  n_elements_ = n_kept_;
  std::ranges::stable_sort(pooled, std::ranges::greater{}, [&](std::size_t b) { return buckets_[b].count; });
  std::vector<std::size_t> placed;
  for (const std::size_t b : pooled) {
    std::vector<core::Slice> taken;  // by buckets that meet this one
    for (const std::size_t other : placed)
      if (meet(*units_[b], *units_[other])) taken.push_back(at(other));
    std::ranges::sort(taken, {}, &core::Slice::offset);
    offsets_[b] = n_kept_;
    for (const core::Slice& slice : taken) {
      if (slice.offset >= offsets_[b] + buckets_[b].count) break;
      offsets_[b] = std::max(offsets_[b], core::round_up(slice.end(), alignment));
    }
    n_elements_ = std::max(n_elements_, core::round_up(at(b).end(), alignment));
    placed.push_back(b);
  }
}

std::optional<std::size_t> BucketPlaces::bucket_of(std::size_t unit) const noexcept {
  const auto found = std::ranges::find(units_, std::optional{unit});
  return found == units_.end() ? std::nullopt : std::optional{static_cast<std::size_t>(found - units_.begin())};
}

HeldUnits::HeldUnits(const UnitTurns& turns, const BucketPlaces& places)
    : turns_{turns}, places_{places}, is_held_(turns.n_units()) {}

std::span<const std::size_t> HeldUnits::need(std::size_t unit, bool is_backward) {
  to_gather_.clear();
  const UnitOrder& order = turns_.order(is_backward);
  const std::size_t end = std::min(order.turns[unit] + turns_.prefetch() + 1, order.units.size());
  for (std::size_t turn = order.turns[unit]; turn < end; ++turn) {
    const std::size_t next = order.units[turn];
    const auto bucket = places_.bucket_of(next);
    if (!bucket || is_held_[next]) continue;
    for (std::size_t other = 0; other < is_held_.size(); ++other)
      if (const auto of_other = places_.bucket_of(other); of_other && places_.overlap(*bucket, *of_other))
        is_held_[other] = false;
    is_held_[next] = true;
    to_gather_.push_back(next);
  }
  return to_gather_;
}

}  // namespace lockstep::parallel
