#include "training/shard/drawing.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace lockstep::training::shard {
namespace {

template <class T>
std::span<const std::byte> bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span{values});
}

TEST(Drawing, FewValuesAreListed) {
  const std::vector<std::int32_t> pair{3, -4};
  EXPECT_EQ(describe_values({core::DType::int32, {2}}, bytes(pair)), "[3, -4]");
  const std::vector<float> rating{4.5f};
  EXPECT_EQ(describe_values({core::DType::float32, {}}, bytes(rating)), "4.5");
}

TEST(Drawing, ManyValuesAreSummarized) {
  std::vector<std::uint8_t> pixels(100, 0);
  pixels[7] = 200;
  EXPECT_EQ(describe_values({core::DType::uint8, {10, 10}}, bytes(pixels)), "min 0, mean 2, max 200");
}

TEST(Drawing, NanIsCountedNotAveraged) {
  std::vector<float> values(9, 1);
  values[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(describe_values({core::DType::float32, {9}}, bytes(values)), "min 1, mean 1, max 1, 1 NaN");
  values.assign(9, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(describe_values({core::DType::float32, {9}}, bytes(values)), "9 NaN");
}

TEST(Drawing, SmallImagesAreDrawn) {
  const std::vector<std::uint8_t> gray{0, 255, 128, 25};
  EXPECT_EQ(draw({core::DType::uint8, {2, 2}}, bytes(gray)), "  @@\n++  \n");
  const std::vector<std::uint8_t> rgb{255, 255, 255, 0, 0, 255};
  EXPECT_EQ(draw({core::DType::uint8, {1, 2, 3}}, bytes(rgb)), "@@--\n");
}

TEST(Drawing, EverythingElseIsNot) {
  const std::vector<std::uint8_t> large(33);
  EXPECT_EQ(draw({core::DType::uint8, {33, 1}}, bytes(large)), "");
  EXPECT_EQ(draw({core::DType::uint8, {33}}, bytes(large)), "");
  const std::vector<float> floats(4);
  EXPECT_EQ(draw({core::DType::float32, {2, 2}}, bytes(floats)), "");
}

}  // namespace
}  // namespace lockstep::training::shard
