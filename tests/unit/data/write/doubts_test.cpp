#include "data/write/doubts.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace lockstep::data {
namespace {

/// Samples as "x y" with small numbers, of the splits train and val.
struct Made {
  std::uint64_t x;
  std::uint64_t y;
};

std::vector<Remark> doubts(const std::vector<Made>& train, const std::vector<Made>& val, const SetSpec& spec,
                           std::uint64_t one_in = 1) {
  SetFacts facts{.spec = spec, .one_in = one_in};
  facts.name_of = [](std::size_t split, std::uint64_t index) { return fmt::format("{}{}", "tv"[split], index); };
  for (const auto* made : {&train, &val}) {
    const auto split = static_cast<std::uint32_t>(facts.splits.size());
    if (split > 0 && made->empty()) continue;
    facts.splits.push_back({split == 0 ? "train" : "val", made->size(), {}, {}, {}});
    for (std::uint64_t i = made->size(); i-- > 0;)
      facts.digests.push_back({.x = (*made)[i].x, .y = (*made)[i].y, .index = i, .split = split});
  }
  return remarks_on_samples(facts);
}

const SetSpec numbers{.x = {core::DType::float32, {2}}, .y = {core::DType::float32, {}}};
const SetSpec classes{
    .x = {core::DType::float32, {2}}, .y = {core::DType::uint8, {}}, .classes = {"ant", "bee", "cow"}};

using Remarks = std::vector<Remark>;

TEST(Doubts, NothingIsSaidOfWhatIsThereOnce) {
  EXPECT_EQ(doubts({{1, 0}, {2, 0}, {3, 1}}, {{4, 0}, {5, 1}}, classes), Remarks{});
  EXPECT_EQ(doubts({}, {}, numbers), Remarks{});
}

TEST(Doubts, WhatTwoSplitsHaveIsToldWithTheFirstOfBoth) {
  EXPECT_EQ(doubts({{5, 0}, {2, 0}, {3, 1}, {9, 0}}, {{4, 0}, {3, 0}, {2, 0}}, classes),
            (Remarks{warning("val: 2 of 3 samples have an x that train has as well, such as v1 and t2")}));
  EXPECT_EQ(doubts({{5, 0}, {2, 0}}, {{5, 0}}, classes),
            (Remarks{warning("val: 1 of 1 sample has an x that train has as well, such as v0 and t0")}));
}

TEST(Doubts, RepeatsWithinASplitAreCounted) {
  EXPECT_EQ(doubts({{5, 7}, {2, 7}, {5, 7}, {5, 7}}, {}, numbers),
            (Remarks{note("train: 2 of 4 samples repeat the x of an earlier one, such as t2 and t0")}));
  EXPECT_EQ(doubts({{5, 7}, {5, 7}, {5, 8}}, {}, numbers),
            (Remarks{note("train: 2 of 3 samples repeat the x of an earlier one, 1 of them with another y, such as t2 "
                          "and t0")}));
  EXPECT_EQ(
      doubts({{1, 0}, {1, 1}}, {{9, 0}}, classes),
      (Remarks{warning("train: 1 of 2 samples repeats the x of an earlier one, 1 of them with another class, such "
                       "as t1 and t0")}));
}

TEST(Doubts, SplitsThatDoNotFitAreTold) {
  EXPECT_EQ(doubts({{1, 0}}, {{2, 0}, {3, 0}}, classes),
            (Remarks{warning("val has 2 samples and train 1: see that they are not swapped")}));
  EXPECT_EQ(doubts({{1, 0}, {2, 0}, {3, 0}}, {{4, 1}, {5, 2}}, classes),
            (Remarks{warning("val: 2 classes of it have no sample in train: bee, cow")}));
  EXPECT_EQ(doubts({{1, 0}, {2, 1}}, {{4, 0}}, classes), Remarks{}) << "val may lack classes";
}

TEST(Doubts, OfManySamplesOneInSoManyIsCompared) {
  EXPECT_EQ(compared_one_in(0), 1);
  EXPECT_EQ(compared_one_in(1 << 21), 1);
  EXPECT_EQ(compared_one_in((1 << 21) + 2), 2);
  EXPECT_EQ(compared_one_in(std::uint64_t{1} << 40), std::uint64_t{1} << 19);
  EXPECT_TRUE(is_compared({.x = 6}, 2));
  EXPECT_FALSE(is_compared({.x = 6}, 4));
  EXPECT_EQ(doubts({{4, 0}, {4, 1}}, {}, numbers, 4),
            (Remarks{note("train: 1 of 2 compared samples repeats the x of an earlier one, 1 of them with another y, "
                          "such as t1 and t0 (one in 4 is compared)")}));
}

TEST(Doubts, DigestsAreOfXAndY) {
  const std::string a = "abc", b = "abd";
  const auto digests_of = [](const std::string& x, const std::string& y) {
    return digest_sample(std::as_bytes(std::span{x}), std::as_bytes(std::span{y}));
  };
  EXPECT_EQ(digests_of(a, "1").x, digests_of(a, "2").x);
  EXPECT_NE(digests_of(a, "1").x, digests_of(b, "1").x);
  EXPECT_EQ(digests_of(a, "1").y, 0x31U) << "as it is stored";
  EXPECT_NE(digests_of(a, "123456789").y, digests_of(a, "123456780").y);
}

TEST(Doubts, NumbersThatTrainingTakesAsOthersAreTold) {
  SplitFacts train{.name = "train"};
  const SetSpec wide{.x = {core::DType::int64, {2}}, .y = {core::DType::float64, {}}};
  SetFacts of_wide{.spec = wide};
  const std::vector<std::int64_t> x{1, 16777217, 20000001, 4};
  const std::vector<double> y{1e300, 0.1};
  add_values(core::DType::int64, std::as_bytes(std::span{x}), train.x);
  add_values(core::DType::float64, std::as_bytes(std::span{y}), train.y);
  of_wide.splits.push_back(train);
  EXPECT_EQ(remarks_on_values(of_wide),
            (Remarks{warning("train: 2 of 4 values of x are rounded in training, as float32 does not hold these whole "
                             "numbers, such as 16777217 (as float32 16777216); ids are not"),
                     warning("train: 1 of 2 values of y is beyond float32, in which training computes, such as 1e+300 "
                             "(as float32 inf)")}));
}

TEST(Doubts, LevelsThatAreNotOutOf255AreTold) {
  const auto doubt = [](core::DType dtype, const std::vector<std::uint64_t>& shape, double highest) {
    const SetSpec spec{.x = {dtype, shape}, .y = {core::DType::uint8, {}}};
    SetFacts facts{.spec = spec};
    facts.splits.push_back({.name = "train", .x = {.highest = highest}});
    facts.splits.push_back({.name = "val"});
    const Remarks remarks = remarks_on_values(facts);
    return remarks.empty() ? "" : line_of(remarks.front());
  };
  EXPECT_EQ(doubt(core::DType::uint8, {8, 8}, 16),
            "warning: x, uint8, has no value above 16, and training divides by 255: levels that are not out of 255 are "
            "better stored as floats");
  EXPECT_EQ(doubt(core::DType::uint8, {8, 8}, 200), "");
  EXPECT_EQ(doubt(core::DType::uint8, {8}, 16), "") << "told by the source";
  EXPECT_EQ(doubt(core::DType::float32, {3, 8, 8}, 255),
            "assumed: x, float32, has values up to 255 and is taken as numbers: training divides levels of uint8 alone "
            "by 255");
  EXPECT_EQ(doubt(core::DType::float32, {3, 8, 8}, 1), "");
}

TEST(Doubts, WhatMarksTheMissingIsTold) {
  SetFacts facts{.spec = numbers};
  facts.splits.push_back({.name = "train"});
  const std::vector<float> x{1, -9999, -9999, 4};
  add_values(core::DType::float32, std::as_bytes(std::span{x}), facts.splits[0].x);
  EXPECT_EQ(remarks_on_values(facts),
            (Remarks{warning("train: 2 of 4 values of x are -9999 or such, which often mark what is missing")}));
}

TEST(Doubts, NamesOfClassesThatMisleadAreTold) {
  EXPECT_EQ(remarks_on_classes({"Cat", "cat", "dog"}),
            (Remarks{warning("the classes 'Cat' and 'cat' differ only by case, blanks or invisible characters")}));
  EXPECT_EQ(remarks_on_classes({"10", "11", "9"}),
            (Remarks{warning("classes are whole numbers and sorted as texts: the label of class '11' is 1")}));
  EXPECT_EQ(remarks_on_classes({"0", "1", "10", "11"}), Remarks{});
  EXPECT_EQ(remarks_on_classes({"a1", "a10", "a2"}), Remarks{});
}

TEST(Doubts, SamplesOfZerosAloneAreTold) {
  SetFacts facts{.spec = numbers};
  facts.name_of = [](std::size_t, std::uint64_t index) { return fmt::format("sample {}", index); };
  facts.splits.push_back({.name = "train", .n_samples = 1000, .blank = {.n = 200, .first = 800}});
  EXPECT_EQ(
      remarks_on_samples(facts),
      (Remarks{warning("train: the x of 200 of 1000 samples are zeros alone, the first is sample 800: see that it "
                       "was written")}));
}

}  // namespace
}  // namespace lockstep::data
