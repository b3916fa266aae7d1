#include "core/slice.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::core {
namespace {

TEST(Slice, IntersectionIsWhatBothHave) {
  EXPECT_EQ(intersection({3, 10}, {5, 4}), (Slice{5, 4}));
  EXPECT_EQ(intersection({3, 10}, {10, 40}), (Slice{10, 3}));
  EXPECT_EQ(intersection({10, 40}, {3, 10}), (Slice{10, 3}));
  EXPECT_EQ(intersection({3, 10}, {13, 1}), Slice{});
  EXPECT_EQ(intersection({20, 5}, {3, 10}), Slice{});
  EXPECT_EQ(intersection({3, 10}, {5, 0}), Slice{});
}

TEST(Slice, IsAPartOfASpan) {
  const std::vector<int> values{0, 1, 2, 3, 4};
  EXPECT_EQ((Slice{1, 3}).of(std::span{values}).data(), &values[1]);
  EXPECT_EQ((Slice{1, 3}).of(std::span{values}).size(), 3U);
  EXPECT_EQ((Slice{7, 3}).seen_from(5), (Slice{2, 3}));
  EXPECT_EQ((Slice{7, 3}).end(), 10U);
}

TEST(Partition, PartsAreContiguousBeginAtGrainsAndDifferByAtMostOne) {
  for (const std::size_t grain : {1, 3, 1024}) {
    for (const std::size_t n : {0, 1, 5, 16, 17, 1000, 123'457}) {
      for (std::size_t n_parts = 1; n_parts <= 19; ++n_parts) {
        std::size_t next = 48;
        for (std::size_t index = 0; index < n_parts; ++index) {
          const Slice part = partition(Slice{48, n}, n_parts, index, grain);
          EXPECT_EQ(part.offset, next);
          EXPECT_TRUE((part.offset - 48) % grain == 0 || part.empty());
          EXPECT_LE(part.count, n / n_parts + grain);
          EXPECT_TRUE(part.count + 2 * grain > n / n_parts) << "shorter by more than a grain and the vector's end";
          next = part.end();
        }
        EXPECT_EQ(next, 48 + n);
      }
    }
  }
}

TEST(Partition, TheFirstPartsAreTheLongest) {
  EXPECT_EQ(partition(10, 4, 0), (Slice{0, 3}));
  EXPECT_EQ(partition(10, 4, 1), (Slice{3, 3}));
  EXPECT_EQ(partition(10, 4, 2), (Slice{6, 2}));
  EXPECT_EQ(partition(10, 4, 3), (Slice{8, 2}));
  EXPECT_EQ(partition(10, 2, 0, 4), (Slice{0, 8}));
  EXPECT_EQ(partition(10, 2, 1, 4), (Slice{8, 2}));
}

}  // namespace
}  // namespace lockstep::core
