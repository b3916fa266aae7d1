#include "core/dtype.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <type_traits>

#include "core/rng.hpp"
#include "support/sanitized.hpp"

namespace lockstep::core {
namespace {

template <class T>
struct Format;
template <>
struct Format<float16> {
  static constexpr int fraction_bits = 10, bias = 15;
};
template <>
struct Format<bfloat16> {
  static constexpr int fraction_bits = 7, bias = 127;
};

template <class T>
class ShortFloat : public testing::Test {
 protected:
  static constexpr int fraction_bits = Format<T>::fraction_bits, bias = Format<T>::bias;
  static constexpr int infinity = 0x7fff >> fraction_bits << fraction_bits;

  // By the definition of the format. The bits of infinity stand for the power of two after the largest number.
  static double value_of(int bits) {
    const int exponent = bits >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
    if (exponent == 0) return std::ldexp(fraction, 1 - bias - fraction_bits);
    return std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  }
  // Rounds with the arithmetic of doubles, to a multiple of the last place.
  static double rounded(double value) {
    int exponent = 0;
    std::frexp(value, &exponent);
    const int last_place = std::max(exponent - 1, 1 - bias) - fraction_bits;
    const double result = std::ldexp(std::nearbyint(std::ldexp(value, -last_place)), last_place);
    return std::abs(result) < value_of(infinity) ? result
                                                 : std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  static int bits_of(float value) { return T{value}.bits; }
};

using ShortFloats = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(ShortFloat, ShortFloats);

TYPED_TEST(ShortFloat, EveryBitPatternRoundTrips) {
  constexpr int quiet = 1 << (TestFixture::fraction_bits - 1);
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const bool is_nan = (bits & 0x7fff) > TestFixture::infinity;
    const auto value = static_cast<float>(TypeParam::from_bits(static_cast<std::uint16_t>(bits)));
    ASSERT_EQ(std::isnan(value), is_nan) << bits;
    ASSERT_EQ(TestFixture::bits_of(value), is_nan ? bits | quiet : bits);
  }
}

TYPED_TEST(ShortFloat, EveryValueIsThatOfTheFormat) {
  for (int bits = 0; bits < TestFixture::infinity; ++bits) {
    ASSERT_EQ(static_cast<float>(TypeParam::from_bits(static_cast<std::uint16_t>(bits))), TestFixture::value_of(bits));
    ASSERT_EQ(static_cast<float>(TypeParam::from_bits(static_cast<std::uint16_t>(bits | 0x8000))),
              -TestFixture::value_of(bits));
  }
}

TYPED_TEST(ShortFloat, EveryMidpointRoundsToEvenAndItsNeighboursToTheNearest) {
  for (int bits = 0; bits < TestFixture::infinity; ++bits) {
    const double exact = (TestFixture::value_of(bits) + TestFixture::value_of(bits + 1)) / 2;
    const auto midpoint = static_cast<float>(exact);
    ASSERT_EQ(midpoint, exact);
    const int even = bits + bits % 2;
    ASSERT_EQ(TestFixture::bits_of(midpoint), even);
    ASSERT_EQ(TestFixture::bits_of(-midpoint), even | 0x8000);
    ASSERT_EQ(TestFixture::bits_of(std::nextafter(midpoint, 0.0f)), bits);
    ASSERT_EQ(TestFixture::bits_of(std::nextafter(midpoint, std::numeric_limits<float>::infinity())), bits + 1);
  }
}

TYPED_TEST(ShortFloat, RandomFloatsRoundAsTheirDoublesDo) {
  Random random{1};
  for (int i = 0; i < 1'000'000 / slow_divisor; ++i) {
    // Half of them have exponents around those of float16.
    std::uint64_t bits = random.next() & 0xffff'ffff;
    if (i % 2 == 0) bits = (bits & 0x807f'ffff) | (95 + random.below(55)) << 23;
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const auto result = static_cast<float>(TypeParam{value});
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(result));
    } else {
      ASSERT_EQ(result, TestFixture::rounded(value)) << value;
      ASSERT_EQ(std::signbit(result), std::signbit(value));
    }
  }
}

TYPED_TEST(ShortFloat, NanAndInfinityStay) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(TestFixture::bits_of(inf), TestFixture::infinity);
  EXPECT_EQ(TestFixture::bits_of(-inf), TestFixture::infinity | 0x8000);
  EXPECT_EQ(TestFixture::bits_of(std::numeric_limits<float>::max()), TestFixture::infinity);
  // A signalling NaN whose payload is only in bits that are cut off.
  EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam{std::bit_cast<float>(0x7f80'0001u)})));
  const auto signalling = TypeParam::from_bits(TestFixture::infinity | 1);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(signalling)) & 0x7fc0'0000u, 0x7fc0'0000u);
}

TEST(DType, NamesSizesAndKinds) {
  std::map<std::string, std::size_t> sizes;
  std::set<std::string> floating;
  for (const DType dtype : all_dtypes) {
    const std::string word{name(dtype)};
    sizes[word] = size_of(dtype);
    if (is_floating(dtype)) floating.insert(word);
  }
  EXPECT_EQ(sizes, (std::map<std::string, std::size_t>{{"int8", 1},
                                                       {"uint8", 1},
                                                       {"int16", 2},
                                                       {"uint16", 2},
                                                       {"int32", 4},
                                                       {"uint32", 4},
                                                       {"int64", 8},
                                                       {"uint64", 8},
                                                       {"float16", 2},
                                                       {"bfloat16", 2},
                                                       {"float32", 4},
                                                       {"float64", 8}}));
  EXPECT_EQ(floating, (std::set<std::string>{"bfloat16", "float16", "float32", "float64"}));
}

TEST(DType, FindsNamesAndAliasesInAnyCase) {
  for (const DType dtype : all_dtypes) EXPECT_EQ(find_dtype(name(dtype)), dtype);
  const std::map<std::string, DType> aliases{
      {"char", DType::int8},   {"int", DType::int32},     {"half", DType::float16},  {"fp16", DType::float16},
      {"f16", DType::float16}, {"bf16", DType::bfloat16}, {"BF16", DType::bfloat16}, {"float", DType::float32},
      {"f32", DType::float32}, {"fp32", DType::float32},  {"Float", DType::float32}, {"double", DType::float64},
      {"f64", DType::float64}, {"fp64", DType::float64},  {"INT8", DType::int8},     {"Float16", DType::float16},
  };
  for (const auto& [word, dtype] : aliases) EXPECT_EQ(find_dtype(word), dtype) << word;
  for (const char* word : {"", "floa", "float3", "float322", "int128", " int8"}) EXPECT_FALSE(find_dtype(word)) << word;
}

TEST(DType, VisitsTheMatchingType) {
  for (const DType dtype : all_dtypes) {
    const std::size_t size = visit(dtype, []<class T>(std::type_identity<T>) { return sizeof(T); });
    EXPECT_EQ(size, size_of(dtype));
  }
  EXPECT_TRUE(visit(DType::bfloat16, []<class T>(std::type_identity<T>) { return std::is_same_v<T, bfloat16>; }));
  EXPECT_TRUE(visit(DType::uint64, []<class T>(std::type_identity<T>) { return std::is_same_v<T, std::uint64_t>; }));
}

}  // namespace
}  // namespace lockstep::core
