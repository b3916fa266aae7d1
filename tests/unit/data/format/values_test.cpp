#include "data/format/values.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lockstep::data {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span{values});
}

template <class T>
ValueFacts facts_of(core::DType dtype, const std::vector<T>& values) {
  ValueFacts facts;
  add_values(dtype, bytes_of(values), facts);
  return facts;
}

TEST(Values, CountsWhatIsNotFiniteInEveryFloat) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(facts_of(core::DType::float32, std::vector<float>{1, nan, inf, -nan, -inf, 0}).n_not_finite, 4);
  EXPECT_EQ(facts_of(core::DType::float64, std::vector<double>{1, double{nan}, 1e300}).n_not_finite, 1);
  EXPECT_EQ(
      facts_of(core::DType::float16, std::vector<core::float16>{core::float16{nan}, core::float16{inf}}).n_not_finite,
      2);
  EXPECT_EQ(facts_of(core::DType::bfloat16, std::vector<core::bfloat16>{core::bfloat16{inf}, core::bfloat16{nan}})
                .n_not_finite,
            2);
  EXPECT_EQ(facts_of(core::DType::uint32, std::vector<float>{nan}).n_not_finite, 0);
}

TEST(Values, CountsWhatFloat32DoesNotHold) {
  const auto integers =
      facts_of(core::DType::int64, std::vector<std::int64_t>{16777216, 16777217, -16777219, 33554436, INT64_MIN});
  EXPECT_EQ(integers.rounded.n, 2);
  EXPECT_EQ(describe_loss(core::DType::int64, integers.rounded), "16777217 (as float32 16777216)");
  EXPECT_EQ(facts_of(core::DType::uint64, std::vector<std::uint64_t>{UINT64_MAX, 1}).rounded.n, 1);
  EXPECT_EQ(facts_of(core::DType::uint32, std::vector<std::uint32_t>{4294967295U, 4294967040U}).rounded.n, 1);
  EXPECT_EQ(facts_of(core::DType::int32, std::vector<std::int32_t>{INT32_MIN, INT32_MAX, 0}).rounded.n, 1);
  const auto doubles = facts_of(core::DType::float64,
                                std::vector<double>{0.1, 16777217, 16777217.5, 1e10, 1e20, 1e300, -1e39, 123456789});
  EXPECT_EQ(doubles.rounded.n, 2) << "only numbers that float64 holds itself";
  EXPECT_EQ(doubles.beyond.n, 2);
  EXPECT_EQ(describe_loss(core::DType::float64, doubles.rounded), "16777217 (as float32 16777216)");
  EXPECT_EQ(describe_loss(core::DType::float64, doubles.beyond), "1e+300 (as float32 inf)");
  EXPECT_EQ(facts_of(core::DType::float32, std::vector<float>{1e30F}).beyond.n, 0);
}

TEST(Values, CountsWhatMarksTheMissing) {
  const auto floats = facts_of(core::DType::float32, std::vector<float>{-9999, 9.96921e36F, 1, -1000, -998.5F});
  EXPECT_EQ(floats.marks.n, 2);
  EXPECT_EQ(describe_value(core::DType::float32, floats.marks), "-9999");
  EXPECT_EQ(facts_of(core::DType::int16, std::vector<std::int16_t>{-999, -32768, 999}).marks.n, 1);
  EXPECT_EQ(facts_of(core::DType::int64, std::vector<std::int64_t>{-99999, -999999, 0}).marks.n, 2);
  EXPECT_EQ(facts_of(core::DType::uint16, std::vector<std::uint16_t>{64537}).marks.n, 0);
}

TEST(Values, AddsUpFactsOfPieces) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ValueFacts sum = facts_of(core::DType::float32, std::vector<float>{nan});
  EXPECT_TRUE(std::isinf(sum.highest)) << "there is none";
  add(sum, facts_of(core::DType::float32, std::vector<float>{-7, -5, nan}));
  EXPECT_EQ(sum.n_values, 4);
  EXPECT_EQ(sum.n_not_finite, 2);
  EXPECT_EQ(sum.highest, -5);
  ValueFacts wide = facts_of(core::DType::int32, std::vector<std::int32_t>{3});
  add(wide, facts_of(core::DType::int32, std::vector<std::int32_t>{20000001}));
  add(wide, facts_of(core::DType::int32, std::vector<std::int32_t>{30000001}));
  EXPECT_EQ(wide.rounded.n, 2);
  EXPECT_EQ(describe_loss(core::DType::int32, wide.rounded), "20000001 (as float32 20000000)");
}

TEST(Values, FindsLabelsWithoutAClass) {
  SetSpec spec;
  spec.y.dtype = core::DType::int16;
  spec.classes = {"a", "b", "c"};
  EXPECT_FALSE(find_bad_label(spec, bytes_of(std::vector<std::int16_t>{0, 1, 2})));
  const auto large = find_bad_label(spec, bytes_of(std::vector<std::int16_t>{0, 1, 3, 4}));
  ASSERT_TRUE(large);
  EXPECT_EQ(large->sample, 2);
  EXPECT_EQ(large->value, "3");
  EXPECT_EQ(find_bad_label(spec, bytes_of(std::vector<std::int16_t>{0, -1}))->value, "-1");
  spec.y.shape = {2};
  EXPECT_EQ(find_bad_label(spec, bytes_of(std::vector<std::int16_t>{0, 1, 1, 9}))->sample, 1);
  EXPECT_EQ(expected_labels(spec), "0 to 2, as there are 3 classes");
  spec.classes = {"a"};
  EXPECT_EQ(expected_labels(spec), "0, as there is 1 class");
  spec.classes.clear();
  EXPECT_FALSE(find_bad_label(spec, bytes_of(std::vector<std::int16_t>{99})));
}

}  // namespace
}  // namespace lockstep::data
