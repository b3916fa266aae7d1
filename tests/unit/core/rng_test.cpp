#include "core/rng.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace lockstep::core {
namespace {

using Block = std::array<std::uint32_t, 4>;

// Random123, tests/kat_vectors, the lines "philox4x32 10".
TEST(Random, PhiloxGivesTheKnownAnswers) {
  constexpr std::uint32_t ones = 0xffff'ffff;
  EXPECT_EQ(philox({0, 0}, {0, 0, 0, 0}), (Block{0x6627'e8d5, 0xe169'c58d, 0xbc57'ac4c, 0x9b00'dbd8}));
  EXPECT_EQ(philox({ones, ones}, {ones, ones, ones, ones}),
            (Block{0x408f'276d, 0x41c8'3b0e, 0xa20b'c7c6, 0x6d54'51fd}));
  EXPECT_EQ(philox({0xa409'3822, 0x299f'31d0}, {0x243f'6a88, 0x85a3'08d3, 0x1319'8a2e, 0x0370'7344}),
            (Block{0xd16c'fe09, 0x94fd'cceb, 0x5001'e420, 0x2412'6ea1}));
}

TEST(Random, ElementIsAFunctionOfSeedStreamAndPosition) {
  Random random{0x0123'4567'89ab'cdef, 0xfedc'ba98'7654'3210};
  for (std::uint32_t position = 0; position < 3; ++position) {
    const Block block = philox({0x89ab'cdef, 0x0123'4567}, {position, 0, 0x7654'3210, 0xfedc'ba98});
    EXPECT_EQ(random.next(), std::uint64_t{block[1]} << 32 | block[0]);
  }
}

TEST(Random, SeedsAndStreamsDiffer) {
  std::set<std::uint64_t> values;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t stream = 0; stream < 10; ++stream) values.insert(Random{seed, stream}.next());
  }
  EXPECT_EQ(values.size(), 100u);
}

// Without rejection, multiples of 3 would occur twice as often as the rest.
TEST(Random, BelowIsUnbiasedForBoundsNearTheRange) {
  constexpr std::uint64_t bound = std::uint64_t{3} << 62;
  constexpr int n = 30'000;
  Random random{3};
  std::array<int, 3> n_hits{};
  for (int i = 0; i < n; ++i) {
    const std::uint64_t value = random.below(bound);
    ASSERT_LT(value, bound);
    ++n_hits[value % 3];
  }
  for (const int hits : n_hits) EXPECT_NEAR(hits, n / 3, 5 * 82);  // standard deviation sqrt(n * 2/9) = 82
}

TEST(Random, BelowCoversSmallBoundsEvenly) {
  Random random{4};
  std::map<std::uint64_t, int> n_hits;
  for (int i = 0; i < 60'000; ++i) ++n_hits[random.below(6)];
  EXPECT_EQ(n_hits.size(), 6u);
  for (const auto& [value, hits] : n_hits) EXPECT_NEAR(hits, 10'000, 5 * 92) << value;  // sqrt(n * 5/36) = 91.3
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0u);
}

TEST(Random, UniformStaysInTheHalfOpenUnitInterval) {
  Random random{5};
  constexpr int n = 100'000;
  double sum = 0, least = 1, most = 0;
  for (int i = 0; i < n; ++i) {
    const double value = random.uniform();
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_GE(least, 0.0);
  EXPECT_LT(least, 1e-3);
  EXPECT_LT(most, 1.0);
  EXPECT_GT(most, 1 - 1e-3);
  EXPECT_NEAR(sum / n, 0.5, 5 * 0.2887 / 316);  // standard deviation of the mean: sqrt(1 / 12 / n)
}

TEST(Random, ShuffleIsDeterministicAndReachesEveryPermutationEvenly) {
  std::map<std::vector<int>, int> n_hits;
  Random random{6}, same{6};
  for (int i = 0; i < 24'000; ++i) {
    std::vector<int> values{0, 1, 2, 3}, again = values;
    shuffle(values, random);
    shuffle(again, same);
    ASSERT_EQ(values, again);
    ++n_hits[values];
  }
  EXPECT_EQ(n_hits.size(), 24u);
  for (const auto& [order, hits] : n_hits) EXPECT_NEAR(hits, 1000, 5 * 31);  // sqrt(n * 23) / 24 = 31.0
}

TEST(Random, ShuffleAcceptsNothingAndOneElement) {
  Random random{7};
  std::vector<int> none, one{1};
  shuffle(none, random);
  shuffle(one, random);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(one, std::vector{1});
}

}  // namespace
}  // namespace lockstep::core
