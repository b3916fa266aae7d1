#include "parallel/slots.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

TEST(Slots, PiecesAreThePartsOfSlotsInASlice) {
  const auto slots = support::make_slots({10, 20, 0, 5});  // at 0, 16, 48, 48
  EXPECT_EQ(pieces_in(slots, {4, 46}), (std::vector<Piece>{{0, {4, 6}}, {1, {16, 20}}, {3, {48, 2}}}));
  EXPECT_TRUE(pieces_in(slots, {36, 12}).empty());
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

}  // namespace
}  // namespace lockstep::parallel
