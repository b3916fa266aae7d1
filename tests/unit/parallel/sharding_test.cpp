#include "parallel/sharding.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

const BucketOptions small{.target{20'000}, .first{1'000}, .last{1'000}};

/// Slots with sizes like those of layers, with units of their own.
std::vector<Slot> layers() {
  std::vector<Slot> slots = support::make_slots({10, 1'280, 36'864, 64, 1, 0, 9'999, 73'728});
  slots[1].block = 20;
  slots[2].block = 4'608;
  slots[7].block = 73'728;
  return slots;
}

std::size_t unit_of_blocks(std::size_t block) { return unit_of({.name = "", .block = block}); }

TEST(Sharding, UnitsAreBlocksOfChannelsOnCacheLines) {
  EXPECT_EQ(unit_of_blocks(1), least_unit);
  EXPECT_EQ(unit_of_blocks(9), 1'152U);
  EXPECT_EQ(unit_of_blocks(4'608), 4'608U);
  EXPECT_EQ(unit_of_blocks(4'609), 16 * 4'609U);
}

TEST(Sharding, SlicesAreTheWholeArenaAndConsistOfUnits) {
  for (const std::vector<Slot>& slots : {layers(), support::odd_slots()}) {
    const std::vector<Bucket> buckets = plan_buckets(slots, small);
    for (std::size_t n_owners = 1; n_owners <= 9; ++n_owners) {
      const Sharding sharding{slots, buckets, n_owners};
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        std::size_t at = buckets[b].slice.offset;
        for (std::size_t owner = 0; owner < n_owners; ++owner) {
          const core::Slice slice = sharding.slices_of(owner)[b];
          EXPECT_EQ(slice.offset, at);
          at = slice.end();
          for (const SlotPart& part : parts_in(slots, slice))
            EXPECT_EQ((part.slice.offset - slots[part.slot].slice.offset) % unit_of(slots[part.slot]), 0U);
        }
        EXPECT_EQ(at, buckets[b].slice.end());
      }
    }
  }
}

TEST(Sharding, IsEvenButForUnits) {
  const std::vector<Slot> slots = layers();
  std::size_t largest_unit = 0;
  for (const Slot& slot : slots) largest_unit = std::max(largest_unit, unit_of(slot));
  const std::vector<Bucket> buckets = plan_buckets(slots, {.target{1 << 20}, .first{1 << 20}, .last{1 << 20}});
  ASSERT_EQ(buckets.size(), 1U);
  for (std::size_t n_owners = 1; n_owners <= 9; ++n_owners)
    for (std::size_t owner = 0; owner < n_owners; ++owner)
      EXPECT_LE(Sharding(slots, buckets, n_owners).slices_of(owner)[0].count,
                buckets[0].slice.count / n_owners + largest_unit);
}

TEST(Sharding, BlocksAreTheSameForAnyOwners) {
  const std::vector<Slot> slots = layers();
  const std::vector<Bucket> buckets = plan_buckets(slots, small);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::vector<SlotPart> whole = blocks_in(slots, buckets[b].slice);
    for (std::size_t n_owners = 2; n_owners <= 5; ++n_owners) {
      const Sharding sharding{slots, buckets, n_owners};
      std::vector<SlotPart> together;
      for (std::size_t owner = 0; owner < n_owners; ++owner)
        for (const SlotPart& block : blocks_in(slots, sharding.slices_of(owner)[b])) together.push_back(block);
      ASSERT_EQ(together.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(together[i].slot, whole[i].slot);
        EXPECT_EQ(together[i].slice, whole[i].slice);
        EXPECT_LT(whole[i].slice.count, 2 * least_unit + unit_alignment);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::parallel
