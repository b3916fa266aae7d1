#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "support/sanitized.hpp"
#include "training/recipe/find.hpp"
#include "unit/training/recipe/fixture.hpp"

namespace lockstep::training {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t n) { return random() % n; }

const std::string& pick(Random& random, const Words& words) { return words[below(random, words.size())]; }

double number_in(Random& random, const Range& range) {
  const double share = static_cast<double>(random() >> 11) / 9007199254740992.0;
  return range.least + share * (std::min(range.most, range.least + 8) - range.least);
}

std::string length(Random& random) {
  return below(random, 2) == 0 ? fmt::format("{}", 1 + below(random, 100))
                               : fmt::format("{} samples", 1 + random() % 1000000);
}

/// Arguments that a user might type for `key`; not all of them fit together.
Words any_flag(Random& random, const Key& key) {
  const std::string flag = "--" + std::string{key.name};
  return std::visit(
      [&]<class T, class Whole>(T Whole::*) -> Words {
        if constexpr (std::is_same_v<T, bool>) return {below(random, 2) == 0 ? flag : "--no-" + std::string{key.name}};
        if constexpr (std::is_integral_v<T>)
          return {flag, fmt::format("{}", static_cast<T>(key.range.least) + (T{1} << below(random, 6)))};
        if constexpr (std::is_same_v<T, double>) return {flag, fmt::format("{}", number_in(random, key.range))};
        if constexpr (std::is_same_v<T, Length>) return {flag, length(random)};
        if constexpr (std::is_same_v<T, std::vector<Length>>)
          return {flag, below(random, 2) == 0 ? "3,4.5,60" : "100 samples"};
        if (const auto words = words_of(key); !words.empty()) return {flag, pick(random, words)};
        if (key.rule == TextRule::augmentation)
          return {flag, pick(random, {"flip", "crop:8:2,flip:0.25", "normalize:0.5:0.25"})};
        return {flag,
                pick(random, {"plain", "a \"quoted\" # one", "back\\slash", "\xc3\xa9t\xc3\xa9 = 'x'", " blank "})};
      },
      key.member);
}

TEST(RecipeText, WhatIsPrintedIsReadAsTheSameRecipe) {
  Random random{1};
  const std::vector<ShippedRecipe> bases = list_recipes();
  ASSERT_FALSE(bases.empty());
  int n_resolved = 0;
  for (int i = 0; i < 1500 / slow_divisor; ++i) {
    Words command_line{bases[below(random, bases.size())].name};
    for (std::size_t n = below(random, 5); n > 0; --n)
      for (const std::string& word : any_flag(random, all_keys()[below(random, all_keys().size())]))
        command_line.push_back(word);
    ResolvedRecipe resolved;
    if (core::complaint_of([&] { resolved = shipped(command_line); })) continue;
    ++n_resolved;
    const std::string text = print_config(resolved);
    ResolvedRecipe again;
    ASSERT_NO_THROW(again = resolve(text)) << text;
    ASSERT_EQ(again.recipe, resolved.recipe) << text << print_config(again);
    ASSERT_TRUE(nlohmann::json::accept(recipe_json(resolved.recipe))) << text;
  }
  EXPECT_GT(n_resolved, 400 / slow_divisor);
}

TEST(RecipeText, EveryValueIsPrintedWithItsOrigin) {
  const std::string text =
      print_config(resolve("model = \"toy\"\nbatch = 8\n", {"5", "--lr", "1e-5", "--data", "my \"d\""}));
  EXPECT_TRUE(has(text, "\nmodel = \"toy\"                            # recipe r.toml:1\n")) << text;
  EXPECT_TRUE(has(text, "\nbatch = 8                                # recipe r.toml:2\n")) << text;
  EXPECT_TRUE(has(text, "\nlr = 1e-05                               # flag --lr\n")) << text;
  EXPECT_TRUE(has(text, "\nepochs = 5                               # first number after the recipe\n")) << text;
  EXPECT_TRUE(has(text, "\nseed = 1                                 # default\n")) << text;
  EXPECT_TRUE(has(text, "\nloss = \"mse\"                             # default for toy\n")) << text;
  EXPECT_TRUE(has(text, "\ndata = \"my \\\"d\\\"\"")) << text;
  EXPECT_FALSE(has(text, "\nsamples =")) << text;
  EXPECT_FALSE(has(text, "\nmilestones =")) << text;
}

TEST(RecipeText, JsonHasTheValues) {
  const Recipe recipe =
      resolve("model = \"toy\"\nschedule = \"multistep\"\nmilestones = [3, \"80 samples\"]\n", {"--milestones", "3,4"})
          .recipe;
  const auto json = nlohmann::json::parse(recipe_json(recipe));
  EXPECT_EQ(json.at("model"), "toy");
  EXPECT_EQ(json.at("batch"), 32);
  EXPECT_EQ(json.at("drop-last"), false);
  EXPECT_EQ(json.at("milestones"), (nlohmann::json{3, 4}));
}

}  // namespace
}  // namespace lockstep::training
