#include "data/augment/convert.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.hpp"

namespace lockstep::data {
namespace {

using core::DType;

template <class From, class To>
std::vector<To> converted(DType from, const std::vector<From>& in, DType to, const Normalization& normalization = {}) {
  std::vector<To> out(in.size());
  convert(from, std::as_bytes(std::span{in}), to, std::as_writable_bytes(std::span{out}), normalization);
  return out;
}

class Conversions : public testing::TestWithParam<DType> {};

TEST_P(Conversions, KeepSmallWholeNumbers) {
  core::visit(GetParam(), [&]<class From>(std::type_identity<From>) {
    std::vector<From> in;
    std::vector<float> floats;
    std::vector<std::int64_t> whole;
    for (int i = 0; i < 100; ++i) {
      if constexpr (std::is_arithmetic_v<From>)
        in.push_back(static_cast<From>(i));
      else
        in.push_back(From{static_cast<float>(i)});
      floats.push_back(static_cast<float>(i));
      whole.push_back(i);
    }
    EXPECT_EQ((converted<From, float>(GetParam(), in, DType::float32)), floats);
    EXPECT_EQ((converted<From, std::int64_t>(GetParam(), in, DType::int64)), whole);
    const auto shorts = converted<From, core::bfloat16>(GetParam(), in, DType::bfloat16);
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(static_cast<float>(shorts[i]), floats[i]);
    const auto same = converted<From, From>(GetParam(), in, GetParam());
    EXPECT_EQ(std::memcmp(same.data(), in.data(), in.size() * sizeof(From)), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Types, Conversions, testing::ValuesIn(core::all_dtypes),
                         [](const auto& instance) { return std::string{name(instance.param)}; });

TEST(Convert, KeepsWholeNumbersExactAndRoundsOthersOnce) {
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  EXPECT_EQ((converted<std::uint64_t, std::int64_t>(DType::uint64, {static_cast<std::uint64_t>(large)}, DType::int64)),
            (std::vector<std::int64_t>{large}));
  EXPECT_EQ((converted<std::int8_t, float>(DType::int8, {-3}, DType::float32)), (std::vector<float>{-3}));
  EXPECT_EQ((converted<double, float>(DType::float64, {0.1}, DType::float32)), (std::vector<float>{0.1f}));
  EXPECT_TRUE(std::isnan(
      converted<double, float>(DType::float64, {std::numeric_limits<double>::quiet_NaN()}, DType::float32)[0]));
}

TEST(Convert, NormalizesChannelsThatFollowOneAnother) {
  const std::vector<float> mean{1, 2}, stddev{2, 4};
  const Normalization normalization{mean, stddev};
  EXPECT_EQ((converted<float, float>(DType::float32, {1, 2, 3, 6, -1, 10}, DType::float32, normalization)),
            (std::vector<float>{0, 0, 1, 1, -1, 2}));
}

TEST(Convert, TakesNumbersAtAnyAddress) {
  std::vector<std::byte> in(1 + 2 * sizeof(std::int32_t)), out(1 + 2 * sizeof(std::int64_t));
  const std::int32_t values[] = {-7, 8};
  std::memcpy(in.data() + 1, values, sizeof values);
  convert(DType::int32, std::span{in}.subspan(1), DType::int64, std::span{out}.subspan(1));
  std::int64_t found[2];
  std::memcpy(found, out.data() + 1, sizeof found);
  EXPECT_EQ(found[0], -7);
  EXPECT_EQ(found[1], 8);
}

TEST(Convert, RefusesOtherTypesAndTooLittleRoom) {
  std::vector<std::byte> in(4), out(8);
  EXPECT_THROW(convert(DType::int32, in, DType::float64, out), core::Error);
  EXPECT_THROW(convert(DType::int32, in, DType::float32, out), core::Error);
  EXPECT_THROW(convert(DType::int32, in, DType::int32, out), core::Error);
}

}  // namespace
}  // namespace lockstep::data
