#include "parallel/slots.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

TEST(Slots, PiecesAreTheSlotsPartsInASlice) {
  const auto slots = support::make_slots({10, 20, 0, 5});  // at 0, 16, 48, 48
  const auto parts = parts_in(slots, {4, 46});
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].slot, 0U);
  EXPECT_EQ(parts[0].slice.offset, 4U);
  EXPECT_EQ(parts[0].slice.count, 6U);
  EXPECT_EQ(parts[1].slot, 1U);
  EXPECT_EQ(parts[1].slice.offset, 16U);
  EXPECT_EQ(parts[1].slice.count, 20U);
  EXPECT_EQ(parts[2].slot, 3U);
  EXPECT_EQ(parts[2].slice.count, 2U);
  EXPECT_TRUE(parts_in(slots, {36, 12}).empty());
}

TEST(Slots, OverlapIsRefused) {
  EXPECT_NO_THROW(require_ordered(support::odd_slots()));
  auto slots = support::make_slots({32, 32});
  slots[1].slice.offset = 31;
  EXPECT_THROW(require_ordered(slots), core::Error);
}

TEST(Slots, FirstNotFiniteSlotIsFound) {
  const auto slots = support::make_slots({10, 20, 5});
  std::vector<float> arena(arena_elements(slots), 1.0F);
  arena[12] = std::numeric_limits<float>::infinity();  // between slots
  EXPECT_FALSE(find_not_finite(slots, arena));
  arena[slots[2].slice.offset] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(find_not_finite(slots, arena), 2U);
  arena[slots[1].slice.offset + 19] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(find_not_finite(slots, arena), 1U);
}

// A block has 16 of the 20 rows, so the last block has 12 rows of padding, and the slot some more.
TEST(Slots, RowsOfAPart) {
  const Slot slot{.name = "w", .slice = {64, 2'000}, .block = 960, .block_rows = 16, .n_rows = 20};
  EXPECT_EQ(rows_of(slot, {64, 960}), (core::Slice{0, 16}));
  EXPECT_EQ(rows_of(slot, {64 + 960, 2'000 - 960}), (core::Slice{16, 4}));
  EXPECT_EQ(rows_of(slot, slot.slice), (core::Slice{0, 20}));
}

}  // namespace
}  // namespace lockstep::parallel
