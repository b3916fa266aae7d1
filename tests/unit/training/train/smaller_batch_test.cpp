#include "training/train/smaller_batch.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "training/train/open_device.hpp"
#include "unit/training/recipe/fixture.hpp"

namespace lockstep::training {
namespace {

/// 1000 bytes for any number of samples, and 10 for each, or 11 if there are more than 100.
std::uint64_t activations_of(const Recipe&, std::uint64_t n) { return 1000 + 10 * n + (n > 100 ? n : 0); }

Fitting fitting_in(std::uint64_t room, const Recipe& recipe, std::uint64_t at_a_time, int n_ranks = 1) {
  return find_fitting(recipe, {activations_of(recipe, at_a_time), at_a_time, recipe.batch, room}, n_ranks,
                      activations_of);
}

std::uint64_t batch_in(std::uint64_t room, const Recipe& recipe, std::uint64_t at_a_time, int n_ranks = 1) {
  const Fitting fitting = fitting_in(room, recipe, at_a_time, n_ranks);
  return fitting.smaller ? fitting.smaller->batch : 0;
}

TEST(SmallerBatch, IsTheLargestThatFits) {
  const Recipe recipe{.batch = 256};
  for (const std::uint64_t n : {1U, 2U, 63U, 99U, 100U, 101U, 107U, 128U, 200U, 255U})
    for (const std::uint64_t more : {0U, 9U})
      EXPECT_EQ(batch_in(activations_of(recipe, n) + more, recipe, 256), n) << more;
  EXPECT_EQ(batch_in(1009, recipe, 256), 0U) << "not one sample has room";
  EXPECT_EQ(batch_in(0, recipe, 256), 0U);
}

// Activations of some networks have such a step.
TEST(SmallerBatch, IsFoundWhereBytesGrowUnevenly) {
  const auto bent = [](const Recipe&, std::uint64_t n) { return n < 1000 ? 300 * n : 120'000 + 180 * n; };
  const Recipe recipe{.batch = 2000};
  for (const std::uint64_t n : {1U, 45U, 139U, 549U, 998U, 1300U, 1999U}) {
    const Fitting fitting = find_fitting(recipe, {bent(recipe, 2000), 2000, 2000, bent(recipe, n)}, 1, bent);
    ASSERT_TRUE(fitting.smaller) << n;
    EXPECT_EQ(fitting.smaller->batch, n);
  }
}

TEST(SmallerBatch, PassesOverWhatCannotBePlanned) {
  const auto plan = [](const Recipe& recipe, std::uint64_t n) {
    if (n < 4) core::fail_usage({.what = "groups of too few samples", .where = "bn-group"});
    return activations_of(recipe, n);
  };
  const Recipe recipe{.batch = 64, .bn_group = 64};
  for (const std::uint64_t n : {4U, 9U}) {
    const Fitting fitting =
        find_fitting(recipe, {activations_of(recipe, 64), 64, 64, activations_of(recipe, n)}, 1, plan);
    ASSERT_TRUE(fitting.smaller) << n;
    EXPECT_EQ(fitting.smaller->batch, n);
  }
  EXPECT_FALSE(find_fitting(recipe, {activations_of(recipe, 64), 64, 64, activations_of(recipe, 3)}, 1, plan).smaller);
}

TEST(SmallerBatch, HasPartsOfTheSamplesThatThereAre) {
  const Recipe recipe{.batch = 1000};
  const Fitting fitting =
      find_fitting(recipe, {activations_of(recipe, 100), 100, 100, activations_of(recipe, 10)}, 1, activations_of);
  ASSERT_TRUE(fitting.in_parts);
  EXPECT_EQ(fitting.in_parts->accumulate, 10U);
}

TEST(SmallerBatch, IsOneThatRanksCanHave) {
  EXPECT_EQ(batch_in(activations_of({}, 20), {.batch = 100}, 34, 3), 60U);
  EXPECT_EQ(batch_in(activations_of({}, 47), {.batch = 128, .bn_group = 16}, 128), 32U);
  EXPECT_EQ(batch_in(activations_of({}, 15), {.batch = 64, .bn_group = 8}, 32, 2), 16U);
  EXPECT_EQ(batch_in(activations_of({}, 15), {.batch = 96, .accumulate = 3}, 32), 45U);
  EXPECT_EQ(batch_in(activations_of({}, 7), {.batch = 64, .deterministic = true, .lanes = 4}, 16), 28U);
}

// Batch normalization uses the whole batch as one group by default.
TEST(SmallerBatch, HasGroupsThatFollowIt) {
  const Fitting fitting = fitting_in(activations_of({}, 21), {.batch = 64, .bn_group = 64}, 64);
  ASSERT_TRUE(fitting.smaller);
  EXPECT_EQ(fitting.smaller->batch, 21U);
  EXPECT_EQ(fitting.smaller->bn_group, 21U);
  ASSERT_TRUE(fitting.in_parts);
  EXPECT_EQ(fitting.in_parts->accumulate, 4U);
  EXPECT_EQ(fitting.in_parts->bn_group, 16U);
  EXPECT_EQ(batch_in(activations_of({}, 21), {.batch = 128, .bn_group = 128}, 64, 2), 42U) << "of two ranks together";
}

TEST(SmallerBatch, PartsAreWhatRanksAccept) {
  const Recipe recipe{.batch = 160, .bn_group = 8};
  const Fitting fitting = fitting_in(activations_of({}, 24), recipe, 80, 2);
  ASSERT_TRUE(fitting.in_parts);
  EXPECT_EQ(fitting.in_parts->accumulate, 5U) << "4 parts of a rank are of 20 samples";
  EXPECT_FALSE(fitting_in(activations_of({}, 7), recipe, 80, 2).in_parts);
}

TEST(Settle, ChoosesAPrecision) {
  const auto precision_on = [](std::optional<nn::Precision> asked, const runtime::DeviceChoice& choice) {
    Recipe recipe{.precision = asked};
    settle(recipe, choice);
    EXPECT_EQ(recipe.device.has_own_memory, !choice.is_host());
    return recipe.precision;
  };
  const runtime::DeviceChoice host, older{.number = 0}, newer{.number = 0, .all_have_bf16 = true};
  EXPECT_EQ(precision_on({}, host), nn::Precision::f32);
  EXPECT_EQ(precision_on({}, older), nn::Precision::f16);
  EXPECT_EQ(precision_on({}, newer), nn::Precision::bf16);
  EXPECT_EQ(precision_on(nn::Precision::bf16, host), nn::Precision::bf16);
  EXPECT_EQ(precision_on(nn::Precision::f32, newer), nn::Precision::f32);
  EXPECT_TRUE(has(refused([&] { static_cast<void>(precision_on(nn::Precision::bf16, older)); }), "--precision auto"));
}

}  // namespace
}  // namespace lockstep::training
