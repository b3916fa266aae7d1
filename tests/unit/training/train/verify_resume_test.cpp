#include "training/train/verify_resume.hpp"

#include <gtest/gtest.h>

#include "unit/training/refused.hpp"

namespace lockstep::training {
namespace {

Recipe dealt_to(std::uint64_t lanes) { return {.model = "toy", .batch = 64, .deterministic = true, .lanes = lanes}; }

TEST(VerifyResume, OtherRanksAreFewerIfThereAreSome) {
  EXPECT_EQ(other_ranks(dealt_to(4), 4), 2);
  EXPECT_EQ(other_ranks(dealt_to(4), 2), 1);
  EXPECT_EQ(other_ranks(dealt_to(4), 1), 2);
  EXPECT_EQ(other_ranks(dealt_to(8), 8), 4);
  EXPECT_EQ(other_ranks(dealt_to(1), 1), 0);
}

TEST(VerifyResume, OrderByRankHasNoOthers) {
  Recipe recipe = dealt_to(4);
  recipe.order = "torch";
  EXPECT_EQ(other_ranks(recipe, 1), 0);
}

TEST(VerifyResume, TheRecipeIsMadeDeterministic) {
  RecipeWords words{.recipe = "toy"};
  require_deterministic(words);
  EXPECT_TRUE(resolve_text("model = \"toy\"\nsynthetic = true\n", "toy.toml", words).recipe.deterministic);
  require_deterministic(words);  // said already
  EXPECT_EQ(words.settings.size(), 1u);
  words.settings.front().text = "false";
  words.settings.front().origin.where = "--no-deterministic";
  EXPECT_NE(refused([&] { require_deterministic(words); }).find("--no-deterministic; --verify-resume"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::training
