#include "core/sum_hash.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::core {
namespace {

/// All different, also in bits: both zeros, two kinds of NaN, and numbers of every size.
std::vector<float> different_values() {
  std::vector<float> values{0.0F,
                            -0.0F,
                            std::numeric_limits<float>::quiet_NaN(),
                            std::bit_cast<float>(0x7fc0'0001U),
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::denorm_min()};
  for (int i = 0; i < 60; ++i)
    values.push_back(static_cast<float>(i % 7 - 3.5) * std::exp2(static_cast<float>(i - 30)));
  return values;
}

/// Where arrays begin: element numbers of 32 bits end within the fourth.
constexpr std::uint64_t firsts[] = {0, 1, 1'000'003, (std::uint64_t{1} << 32) - 20, std::uint64_t{1} << 40};

TEST(SumHash, KnownAnswers) {
  constexpr std::uint64_t many = std::uint64_t{1} << 32;
  EXPECT_EQ(mix(0), 0xe220'a839'7b1d'cdafU);
  EXPECT_EQ(sum_hash(0, 0.0F), 0xe220'a839'7b1d'cdafU);
  EXPECT_EQ(sum_hash(0, 1.0F), 0xfd69'5a1b'70dc'1235U);
  EXPECT_EQ(sum_hash(3, -0.5F), 0x3d80'42eb'be54'8f83U);
  EXPECT_EQ(sum_hash(many, 1.0F), 0x5e29'de98'f972'8f70U);
  EXPECT_EQ(sum_hash(many + 5, -0.0F), 0xbd14'7e01'efa5'6566U);
  EXPECT_EQ(sum_hash(0, std::vector{1.0F, -0.5F, 0.0F, 3.0F}), 0xcad9'fc73'66f9'e596U);
  EXPECT_EQ(sum_hash(7, std::span<const float>{}), 0U);
}

TEST(SumHash, PartsAddUpInAnyDivisionAndOrder) {
  const std::vector<float> values = different_values();
  for (const std::uint64_t first : firsts) {
    const std::uint64_t whole = sum_hash(first, values);
    std::uint64_t backwards = 0;
    for (std::size_t i = values.size(); i-- > 0;) backwards += sum_hash(first + i, values[i]);
    EXPECT_EQ(backwards, whole) << first;
    for (std::size_t a = 0; a <= values.size(); ++a)
      for (std::size_t b = a; b <= values.size(); ++b) {
        const std::span all{values};
        const std::uint64_t sum = sum_hash(first + b, all.subspan(b)) + sum_hash(first, all.first(a)) +
                                  sum_hash(first + a, all.subspan(a, b - a));
        ASSERT_EQ(sum, whole) << first << ", cut at " << a << " and " << b;
      }
  }
}

TEST(SumHash, AnyBitOfAnyElementChangesIt) {
  std::vector<float> values = different_values();
  for (const std::uint64_t first : firsts) {
    const std::uint64_t whole = sum_hash(first, values);
    for (float& value : values) {
      const auto bits = std::bit_cast<std::uint32_t>(value);
      for (int bit = 0; bit < 32; ++bit) {
        value = std::bit_cast<float>(bits ^ (1U << bit));
        ASSERT_NE(sum_hash(first, values), whole) << first << ", element " << &value - values.data() << ", bit " << bit;
      }
      value = std::bit_cast<float>(bits);
    }
    EXPECT_EQ(sum_hash(first, values), whole) << "all bits are as they were";
  }
}

TEST(SumHash, AnySwapChangesIt) {
  std::vector<float> values = different_values();
  for (const std::uint64_t first : firsts) {
    const std::uint64_t whole = sum_hash(first, values);
    for (std::size_t a = 0; a < values.size(); ++a)
      for (std::size_t b = a + 1; b < values.size(); ++b) {
        std::swap(values[a], values[b]);
        ASSERT_NE(sum_hash(first, values), whole) << first << ", elements " << a << " and " << b;
        std::swap(values[a], values[b]);
      }
  }
}

}  // namespace
}  // namespace lockstep::core
