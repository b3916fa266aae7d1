#include "training/shard/set_source.hpp"

#include <gtest/gtest.h>

namespace lockstep::training::shard {
namespace {

data::SetSpec spec() {
  return {.x = {core::DType::uint8, {28, 28}}, .y = {core::DType::uint8, {}}, .classes = {"cat", "dog"}};
}

void expect_difference(const data::SetSpec& second, const std::string& words) {
  const auto difference = find_difference(spec(), second, "b");
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(*difference, words);
}

TEST(SetSource, EqualSpecsFit) { EXPECT_FALSE(find_difference(spec(), spec(), "b").has_value()); }

TEST(SetSource, TheFirstDifferenceIsNamed) {
  data::SetSpec other = spec();
  other.x.shape = {32, 32};
  expect_difference(other, "x is uint8 [28, 28], but uint8 [32, 32] in b");
  other = spec();
  other.y.dtype = core::DType::int64;
  expect_difference(other, "y is uint8 [], but int64 [] in b");
  other = spec();
  other.encoding = "image";
  expect_difference(other, "samples are kept as 'raw', but as 'image' in b");
  other = spec();
  other.classes[1] = "cow";
  expect_difference(other, "class 1 is 'dog', but 'cow' in b");
  other = spec();
  other.classes.emplace_back("cow");
  expect_difference(other, "there are 2 classes, but 3 in b");
  other.classes = {"cat"};
  EXPECT_EQ(find_difference(other, spec(), "b").value_or(""), "there is 1 class, but 2 in b");
}

}  // namespace
}  // namespace lockstep::training::shard
