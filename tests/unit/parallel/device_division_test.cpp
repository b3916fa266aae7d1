// How devices divide arenas: in equal parts where blocks allow it, with what has no unit whole on all ranks.
#include "parallel/device_division.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "comm/collective.hpp"
#include "core/error.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

constexpr BucketOptions small_buckets{{48 * 1'024}, {1'024}, {1'024}};

/// Units of a multiple of 12 blocks each, which 1 to 4 ranks divide; then a vector.
std::vector<Slot> even_units(std::size_t n_units) {
  std::vector<std::size_t> sizes;
  for (std::size_t unit = 0; unit < n_units; ++unit) sizes.push_back((unit % 3 + 1) * 12 * block_elements);
  sizes.push_back(48);
  std::vector<Slot> slots = support::make_slots(sizes);
  for (std::size_t unit = 0; unit < n_units; ++unit) slots[unit].unit = unit;
  return slots;
}

void expect_each_once(const DeviceDivision& division, std::size_t n_ranks, const std::string& where) {
  std::vector<int> n_times(division.sharding().n_elements());
  std::vector<int> n_saved(n_times.size());
  for (std::size_t rank = 0; rank < n_ranks; ++rank) {
    std::size_t begin = 0;
    for (const KeptSlice& kept : division.updated_by(rank)) {
      EXPECT_EQ(kept.begin, begin) << where;
      begin += kept.slice.count;
      for (int& n : kept.slice.of(std::span{n_times})) ++n;
    }
    EXPECT_EQ(n_elements(division.updated_by(rank)), begin) << where;
    for (const core::Slice& own : division.sharding().slices_of(rank))
      for (int& n : own.of(std::span{n_saved})) ++n;
  }
  for (const Slot& slot : division.sharding().slots())
    for (const int n : slot.slice.of(std::span{n_times}))
      ASSERT_EQ(n, slot.unit && division.divides() ? 1 : static_cast<int>(n_ranks)) << where << slot.name;
  EXPECT_EQ(std::ranges::count(n_saved, 1), std::ssize(n_saved)) << where;
}

TEST(DeviceDivision, GivesEachPartToOneRank) {
  for (const Strategy strategy : strategies_on(true))
    for (const std::size_t n_ranks : {1, 2, 3, 4, 5})
      for (const std::size_t block : {16, 80, 576}) {
        std::vector<Slot> slots = even_units(5);
        for (Slot& slot : slots)
          if (slot.unit) slot.block = block;
        const DeviceDivision division{strategy, slots, small_buckets, n_ranks};
        const std::string where = fmt::format("{} {} {} ", name(strategy), n_ranks, block);
        EXPECT_EQ(division.divides(), divides_states(strategy) && n_ranks > 1) << where;
        expect_each_once(division, n_ranks, where);
        for (std::size_t b = 0; b < division.n_divided(); ++b) {
          const bool is_even = division.sharding().buckets()[b].count % (n_ranks * block_elements) == 0 && block == 16;
          EXPECT_TRUE(division.cuts_of(b).empty() || !is_even) << where;
        }
      }
}

// Plans and slices must have the same parts.
TEST(DeviceDivision, HasThePartsOfTheCall) {
  for (const std::size_t n_ranks : {2, 3, 4})
    for (const std::size_t block : {16, 80}) {
      std::vector<Slot> slots = even_units(4);
      for (Slot& slot : slots)
        if (slot.unit) slot.block = block;
      const DeviceDivision division{Strategy::zero1, slots, small_buckets, n_ranks};
      for (std::size_t b = 0; b < division.n_divided(); ++b) {
        const std::vector<std::size_t> cuts = division.cuts_of(b);
        const core::Slice& bucket = division.sharding().buckets()[b];
        const comm::Call call{.collective = comm::Collective::all_gather, .n_elements = bucket.count, .cuts = cuts};
        EXPECT_EQ(call.has_equal_parts(static_cast<int>(n_ranks)), cuts.empty());
        for (std::size_t rank = 0; rank < n_ranks; ++rank)
          EXPECT_EQ(call.part(static_cast<int>(rank), static_cast<int>(n_ranks)),
                    division.sharding().slices_of(rank)[b].seen_from(bucket.offset))
              << n_ranks << " " << block;
      }
    }
}

TEST(DeviceDivision, EndsBucketsWhereUnitsEnd) {
  std::vector<Slot> slots = even_units(6);
  const DeviceDivision division{Strategy::zero1, slots, small_buckets, 2};
  EXPECT_GT(division.n_divided(), 1U);
  EXPECT_EQ(division.n_divided() + 1, division.sharding().buckets().size());
  EXPECT_EQ(division.sharding().buckets().back(), slots.back().slice);
  for (const core::Slice& bucket : division.sharding().buckets().first(division.n_divided()))
    EXPECT_TRUE(std::ranges::any_of(slots, [&](const Slot& slot) { return slot.slice.offset == bucket.offset; }));
  std::swap(slots.front().unit, slots.back().unit);
  EXPECT_THROW(DeviceDivision(Strategy::zero1, slots, small_buckets, 2), core::Error);
}

TEST(DeviceDivision, KeepsAllWholeWithoutUnits) {
  const DeviceDivision division{Strategy::zero1, support::odd_slots(), small_buckets, 3};
  EXPECT_FALSE(division.divides());
  ASSERT_EQ(division.updated_by(2).size(), 1U);
  EXPECT_EQ(division.updated_by(2).front().slice, (core::Slice{0, division.sharding().n_elements()}));
}

}  // namespace
}  // namespace lockstep::parallel
