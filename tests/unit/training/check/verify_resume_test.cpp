#include "training/check/verify_resume.hpp"

#include <gtest/gtest.h>

#include "unit/training/refused.hpp"

namespace lockstep::training {
namespace {

TEST(VerifyResume, TheRecipeIsMadeDeterministic) {
  RecipeWords words{.recipe = "toy"};
  require_deterministic(words);
  EXPECT_TRUE(resolve_text("model = \"toy\"\nsynthetic = true\n", "toy.toml", words).recipe.deterministic);
  require_deterministic(words);  // already said
  EXPECT_EQ(words.settings.size(), 1u);
  words.settings.front().text = "false";
  words.settings.front().origin.where = "--no-deterministic";
  EXPECT_NE(refused([&] { require_deterministic(words); }).find("--no-deterministic; --verify-resume"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::training
