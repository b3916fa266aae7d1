#include "training/train/model.hpp"

#include "recipe_fixture.hpp"

namespace lockstep::training::train {
namespace {

Recipe resnet_recipe(std::uint64_t batch, std::uint64_t bn_group, std::uint64_t accumulate = 1) {
  Recipe recipe;
  recipe.model = "resnet18";
  recipe.batch = batch;
  recipe.bn_group = bn_group;
  recipe.accumulate = accumulate;
  return recipe;
}

std::string refused_ranks(const Recipe& recipe, int n_ranks) {
  return refused([&] { check_ranks(recipe, n_ranks); });
}

TEST(RanksOfGroup, AreOneWhereAPartHoldsWholeGroups) {
  for (const std::uint64_t group : {1u, 2u, 4u, 8u}) EXPECT_EQ(ranks_of_group(resnet_recipe(32, group), 4), 1);
  EXPECT_EQ(ranks_of_group(resnet_recipe(32, 32), 1), 1);
  EXPECT_EQ(ranks_of_group(resnet_recipe(32, 2, 2), 4), 1);
  EXPECT_EQ(ranks_of_group(resnet_recipe(32, 0), 4), 1);
}

TEST(RanksOfGroup, AreAsManyAsHaveItsSamples) {
  EXPECT_EQ(ranks_of_group(resnet_recipe(32, 16), 4), 2);
  EXPECT_EQ(ranks_of_group(resnet_recipe(32, 32), 4), 4);
  EXPECT_EQ(ranks_of_group(resnet_recipe(48, 24), 6), 3);
  EXPECT_EQ(ranks_of_group(resnet_recipe(10, 10), 4), 4);  // 3, 3, 2 and 2 samples
  for (const std::uint64_t group : {16u, 32u}) EXPECT_NO_THROW(check_ranks(resnet_recipe(32, group), 4));
}

TEST(RanksOfGroup, HaveWholePartsOnly) {
  EXPECT_TRUE(has(refused_ranks(resnet_recipe(24, 12), 3),
                  "groups of 12 samples do not fill each rank's part of a batch of 24"));
  EXPECT_TRUE(has(refused_ranks(resnet_recipe(24, 12), 3), "--batch 36"));
  EXPECT_NO_THROW(check_ranks(resnet_recipe(36, 12), 3));
  EXPECT_TRUE(
      has(refused_ranks(resnet_recipe(48, 32), 6), "a divisor of 8, what each of 6 ranks has at a time, or what "));
}

TEST(RanksOfGroup, HaveOnePartEach) {
  const std::string message = refused_ranks(resnet_recipe(32, 16, 2), 2);
  EXPECT_TRUE(has(message, "groups of 16 samples span parts of a batch that are computed one after another"))
      << message;
  EXPECT_TRUE(has(message, "a divisor of 8, what each of 2 ranks has at a time")) << message;
  EXPECT_TRUE(has(message, "--batch 64, or --accumulate 1")) << message;
  EXPECT_NO_THROW(check_ranks(resnet_recipe(64, 16, 2), 2));
  EXPECT_NO_THROW(check_ranks(resnet_recipe(32, 16, 2), 1));
}

TEST(RanksOfGroup, HaveLanesOfTheirOwn) {
  Recipe recipe = resnet_recipe(32, 8);
  recipe.deterministic = true;
  recipe.lanes = 4;
  for (const int n_ranks : {1, 2, 4}) EXPECT_EQ(ranks_of_group(recipe, n_ranks), 1);
}

}  // namespace
}  // namespace lockstep::training::train
