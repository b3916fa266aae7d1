#include "comm/collective.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lockstep::comm {
namespace {

/// The ranks in the order of their parts.
std::vector<int> order_of_parts(int n_ranks, bool is_order_fixed) {
  const Call call{.n_elements = static_cast<std::size_t>(n_ranks), .is_order_fixed = is_order_fixed};
  std::vector<int> ranks(call.n_elements, -1);
  for (int rank = 0; rank < n_ranks; ++rank) ranks[call.part(rank, n_ranks).offset] = rank;
  return ranks;
}

TEST(Call, PartsLieInRankOrderOrInThatOfAFixedOrder) {
  EXPECT_EQ(order_of_parts(5, false), (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(order_of_parts(1, true), (std::vector{0}));
  EXPECT_EQ(order_of_parts(2, true), (std::vector{0, 1}));
  EXPECT_EQ(order_of_parts(3, true), (std::vector{0, 1, 2}));
  EXPECT_EQ(order_of_parts(4, true), (std::vector{0, 2, 1, 3}));
  EXPECT_EQ(order_of_parts(5, true), (std::vector{0, 1, 3, 2, 4}));  // 0 steps aside for 1, so their parts are adjacent
  EXPECT_EQ(order_of_parts(8, true), (std::vector{0, 4, 2, 6, 1, 5, 3, 7}));
}

// The expected order comes from a walk over all places.
TEST(Call, PartsOfAFixedOrderLieInThatOfTheirPlaces) {
  for (int n_ranks = 1; n_ranks <= 300; ++n_ranks) {
    const PowerOfTwoFold fold{n_ranks, 0};
    std::vector<int> expected;
    for (int place = 0; place < fold.n_active; ++place) {
      const int active = fold.mirrored(place);
      if (active < fold.extra) expected.push_back(fold.rank_of(active) - 1);
      expected.push_back(fold.rank_of(active));
    }
    EXPECT_EQ(order_of_parts(n_ranks, true), expected) << n_ranks << " ranks";
  }
}

TEST(Call, PartsCoverTheVectorOnceAndRankZerosIsTheLongest) {
  for (const bool is_order_fixed : {false, true})
    for (int n_ranks = 1; n_ranks <= 17; ++n_ranks)
      for (const std::size_t n : {0, 1, 16, 1001})
        for (const std::size_t grain : {1, 48}) {
          const Call call{.n_elements = n, .grain = grain, .is_order_fixed = is_order_fixed};
          std::vector<core::Slice> parts;
          for (int rank = 0; rank < n_ranks; ++rank) parts.push_back(call.part(rank, n_ranks));
          for (const core::Slice& part : parts) EXPECT_LE(part.count, parts.front().count);
          std::ranges::sort(parts, {}, [](const core::Slice& part) { return std::pair{part.offset, part.count}; });
          std::size_t end = 0;
          for (const core::Slice& part : parts) {
            EXPECT_EQ(part.offset, end);
            end = part.end();
          }
          EXPECT_EQ(end, n);
        }
}

TEST(Call, PartsMayBeCutAnywhere) {
  const std::vector<std::size_t> cuts{0, 5, 5, 6, 20};
  for (const bool is_order_fixed : {false, true}) {
    const Call call{.collective = Collective::all_gather,
                    .n_elements = 20,
                    .grain = 16,
                    .is_order_fixed = is_order_fixed,
                    .cuts = cuts};
    for (int rank = 0; rank < 4; ++rank) {
      const std::size_t index = call.index_of_part(rank, 4);
      EXPECT_EQ(call.part(rank, 4), (core::Slice{cuts[index], cuts[index + 1] - cuts[index]}));
    }
    EXPECT_EQ(call.part(1, 4).count, is_order_fixed ? 1U : 0U);  // parts 2 and 1
    EXPECT_EQ(call.longest_part(4), 14U);
    EXPECT_FALSE(call.has_equal_parts(4));
  }
  const Call sum{.n_elements = 20, .cuts = cuts};  // has no parts
  EXPECT_EQ(sum.part(1, 4), (core::Slice{5, 5}));
  EXPECT_EQ(sum.longest_part(4), 5U);
}

TEST(Call, EqualPartsAreRecognized) {
  EXPECT_TRUE(Call{.n_elements = 0}.has_equal_parts(3));
  EXPECT_TRUE(Call{.n_elements = 12}.has_equal_parts(4));
  EXPECT_TRUE(Call{.n_elements = 7}.has_equal_parts(1));
  EXPECT_FALSE(Call{.n_elements = 13}.has_equal_parts(4));
  EXPECT_FALSE((Call{.n_elements = 12, .grain = 2}.has_equal_parts(4)));
  EXPECT_TRUE((Call{.n_elements = 16, .grain = 2}.has_equal_parts(4)));
  EXPECT_TRUE((Call{.n_elements = 12, .is_order_fixed = true}.has_equal_parts(3)));
  EXPECT_FALSE((Call{.n_elements = 12, .is_order_fixed = true}.has_equal_parts(4)));  // equal, in another order
}

TEST(Call, ItsSidesAreTheWholeVectorOrThePart) {
  const core::Slice whole{0, 11}, part{4, 4};
  const auto sides = [](Collective collective) {
    const Call call{.collective = collective, .n_elements = 11};
    return std::pair{call.input(1, 3), call.output(1, 3)};
  };
  EXPECT_EQ(sides(Collective::all_reduce), (std::pair{whole, whole}));
  EXPECT_EQ(sides(Collective::reduce_scatter), (std::pair{whole, part}));
  EXPECT_EQ(sides(Collective::all_gather), (std::pair{part, whole}));
}

}  // namespace
}  // namespace lockstep::comm
