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

TEST(Values, CountsWhatIsNotFiniteInEveryFloat) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(count_not_finite(core::DType::float32, bytes_of(std::vector<float>{1, nan, inf, -nan, -inf, 0})), 4);
  EXPECT_EQ(count_not_finite(core::DType::float64, bytes_of(std::vector<double>{1, double{nan}, 1e300})), 1);
  EXPECT_EQ(count_not_finite(core::DType::float16,
                             bytes_of(std::vector<core::float16>{core::float16{nan}, core::float16{inf}})),
            2);
  EXPECT_EQ(count_not_finite(core::DType::bfloat16,
                             bytes_of(std::vector<core::bfloat16>{core::bfloat16{inf}, core::bfloat16{nan}})),
            2);
  EXPECT_EQ(count_not_finite(core::DType::uint32, bytes_of(std::vector<float>{nan})), 0);
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
  spec.classes.clear();
  EXPECT_FALSE(find_bad_label(spec, bytes_of(std::vector<std::int16_t>{99})));
}

}  // namespace
}  // namespace lockstep::data
