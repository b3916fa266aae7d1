#include "metrics/even_sample.hpp"

#include <gtest/gtest.h>

namespace lockstep::metrics {
namespace {

std::vector<double> kept_of(int n, std::size_t most) {
  EvenSample sample{most};
  for (int i = 0; i < n; ++i) sample.add(i);
  return {sample.values().begin(), sample.values().end()};
}

TEST(EvenSample, KeepsAllWhileThereIsRoom) {
  EXPECT_EQ(kept_of(0, 4), (std::vector<double>{}));
  EXPECT_EQ(kept_of(4, 4), (std::vector<double>{0, 1, 2, 3}));
}

TEST(EvenSample, KeepsEverySecondThenEveryFourth) {
  EXPECT_EQ(kept_of(5, 4), (std::vector<double>{0, 2, 4}));
  EXPECT_EQ(kept_of(6, 4), (std::vector<double>{0, 2, 4}));
  EXPECT_EQ(kept_of(7, 4), (std::vector<double>{0, 2, 4, 6}));
  EXPECT_EQ(kept_of(9, 4), (std::vector<double>{0, 4, 8}));
  EXPECT_EQ(kept_of(13, 4), (std::vector<double>{0, 4, 8, 12}));
}

TEST(EvenSample, IsEvenlySpacedAtAnyLength) {
  for (int n = 1; n < 300; ++n) {
    const std::vector<double> kept = kept_of(n, 16);
    EXPECT_LE(kept.size(), 16u);
    EXPECT_GE(kept.size(), std::min<std::size_t>(static_cast<std::size_t>(n), 8u));
    const double stride = kept.size() > 1 ? kept[1] : 1;
    for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_EQ(kept[i], static_cast<double>(i) * stride) << n;
    EXPECT_GE(static_cast<double>(kept.size()) * stride, n) << "up to the end";
  }
}

TEST(EvenSample, NeverMovesItsMemory) {
  EvenSample sample{64};
  sample.add(0);
  const double* const first = sample.values().data();
  for (int i = 0; i < 100'000; ++i) sample.add(i);
  EXPECT_EQ(sample.values().data(), first);
}

TEST(EvenSample, BeginsAnewWhenCleared) {
  EvenSample sample{4};
  for (int i = 0; i < 100; ++i) sample.add(i);
  sample.clear();
  EXPECT_TRUE(sample.values().empty());
  for (int i = 0; i < 3; ++i) sample.add(i);
  EXPECT_EQ(sample.values().size(), 3u);
}

}  // namespace
}  // namespace lockstep::metrics
