#include "io/shuffle.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::io {
namespace {

std::vector<std::byte> to_bytes(const std::vector<int>& values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::vector<std::byte> shuffled(std::size_t element_size, const std::vector<std::byte>& bytes) {
  std::vector<std::byte> to(bytes.size());
  shuffle(element_size, bytes, to);
  return to;
}

TEST(Shuffle, CollectsTheBytesOfEqualPlace) {
  EXPECT_EQ(shuffled(2, to_bytes({1, 2, 3, 4, 5, 6})), to_bytes({1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(shuffled(3, to_bytes({1, 2, 3, 4, 5, 6})), to_bytes({1, 4, 2, 5, 3, 6}));
}

TEST(Shuffle, LeavesAnOddEndAndSingleElements) {
  EXPECT_EQ(shuffled(2, to_bytes({1, 2, 3, 4, 5})), to_bytes({1, 3, 2, 4, 5}));
  EXPECT_EQ(shuffled(4, to_bytes({1, 2, 3, 4, 5, 6, 7})), to_bytes({1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(shuffled(1, to_bytes({1, 2, 3})), to_bytes({1, 2, 3}));
  EXPECT_EQ(shuffled(8, {}), to_bytes({}));
}

TEST(Shuffle, IsUndoneForEachSizeAndLength) {
  for (std::size_t element_size = 1; element_size <= 17; ++element_size) {
    for (std::size_t n = 0; n < 300; ++n) {
      std::vector<std::byte> bytes(n);
      for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 7);
      const auto mixed = shuffled(element_size, bytes);
      for (std::size_t i = 0; element_size > 1 && n / element_size > 1 && i < n - n % element_size; ++i)
        ASSERT_EQ(mixed[i % element_size * (n / element_size) + i / element_size], bytes[i]);
      std::vector<std::byte> back(n);
      unshuffle(element_size, mixed, back);
      ASSERT_EQ(back, bytes) << n << " bytes of elements of " << element_size;
    }
  }
}

}  // namespace
}  // namespace lockstep::io
