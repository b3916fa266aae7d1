#include "training/recipe/keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <sstream>

#include "core/error.hpp"
#include "core/flags.hpp"
#include "nn/graph/models.hpp"
#include "training/recipe/value.hpp"
#include "training/recipe/words.hpp"
#include "unit/training/recipe/fixture.hpp"

namespace lockstep::training {
namespace {

TEST(RecipeKeys, NamesAreKebabCaseAndUnique) {
  std::set<std::string_view> names;
  for (const Key& key : all_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_EQ(key.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string_view::npos) << key.name;
  }
}

TEST(RecipeKeys, NoTwoKeysShareAMember) {
  for (const Key& a : all_keys())
    for (const Key& b : all_keys()) EXPECT_EQ(a.member == b.member, a.name == b.name) << a.name << " " << b.name;
}

TEST(RecipeKeys, EveryMemberHasAKey) {
  const Recipe recipe;
  const auto* const begin = reinterpret_cast<const std::byte*>(&recipe);
  std::map<std::ptrdiff_t, std::ptrdiff_t> ends{{sizeof(Recipe), sizeof(Recipe)}};  // by where each member begins
  const auto add = [&](auto member) {
    const auto& value = value_at(member, recipe);
    const std::ptrdiff_t at = reinterpret_cast<const std::byte*>(&value) - begin;
    ends[at] = at + static_cast<std::ptrdiff_t>(sizeof(value));
  };
  for (const Key& key : all_keys()) std::visit(add, key.member);
  add(&Recipe::device);  // not a key
  constexpr std::ptrdiff_t most_padding = alignof(Recipe) - 1;
  for (std::ptrdiff_t end = 0; const auto& [at, end_of_member] : ends) {
    EXPECT_LE(at - end, most_padding) << "a member before byte " << at << " that no key writes";
    end = end_of_member;
  }
}

TEST(RecipeKeys, EveryKeyIsAFlagAndInTheHelpWithItsDefault) {
  RecipeWords words;
  core::Flags flags{""};
  declare_recipe(flags, words);
  const Words names = flags.names();
  const std::string help = recipe_help();
  for (const Key& key : all_keys()) {
    const std::string flag = "--" + std::string{key.name};
    EXPECT_EQ(std::count(names.begin(), names.end(), flag), 1) << flag;
    EXPECT_TRUE(has(help, "\n      " + flag + " ")) << flag;
    EXPECT_TRUE(has(help, flag + " " + std::string{key.placeholder} + " ")) << flag;
  }
  EXPECT_TRUE(has(help, "--arch 50"));
  EXPECT_TRUE(has(help, "(32)"));
  EXPECT_TRUE(has(help, "constant, step, multistep, cosine, polynomial"));
}

TEST(RecipeKeys, TheHelpFitsAScreenAndBeginsWithExamples) {
  const std::string help = recipe_help();
  EXPECT_EQ(help.find("lockstep train RECIPE"), 0U);
  EXPECT_EQ(help.find("\n\n  lockstep train toy 50 10"), help.find("\n"));
  std::istringstream lines{help};
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
}

TEST(RecipeKeys, UsesAndAlternativesNameKeys) {
  for (const Key& key : all_keys()) {
    EXPECT_EQ(find_key(key.use.selector).has_value(), !key.use.words.empty()) << key.name;
    if (key.instead_of.empty()) continue;
    const auto other = find_key(key.instead_of);
    ASSERT_TRUE(other) << key.name;
    EXPECT_EQ(all_keys()[*other].instead_of, key.name);
  }
}

TEST(RecipeKeys, UsesNameWordsOfTheirSelectors) {
  for (const Key& key : all_keys()) {
    if (key.use.words.empty()) continue;
    const Key& selector = all_keys()[find_key(key.use.selector).value()];
    const Words known = selector.is_boolean() ? Words{"true", "false"} : words_of(selector);
    std::istringstream words{std::string{key.use.words}};
    for (std::string word; words >> word;)
      EXPECT_EQ(std::count(known.begin(), known.end(), word), 1) << key.name << ": " << word;
  }
}

TEST(RecipeKeys, ForeignWordsAreTranslatedToKeys) {
  for (const ForeignWord& word : foreign_words) {
    EXPECT_FALSE(find_key(word.name)) << word.name;
    EXPECT_TRUE(find_key(word.key)) << word.key;
  }
}

TEST(RecipeKeys, DefaultsAreWhatTheKeysAccept) {
  for (const Key& key : all_keys()) {
    Recipe recipe;
    if (!is_set(key, recipe)) continue;
    EXPECT_NO_THROW(assign(key, {.key = std::string{key.name}, .text = to_word(key, recipe)}, recipe)) << key.name;
    EXPECT_EQ(recipe, Recipe{}) << key.name;
  }
}

TEST(RecipeKeys, EachWordIsReadAndWrittenAsItIs) {
  for (const Key& key : all_keys())
    for (const std::string& word : words_of(key)) {
      Recipe recipe;
      assign(key, {.key = std::string{key.name}, .text = word}, recipe);
      EXPECT_EQ(to_word(key, recipe), word) << key.name;
      EXPECT_EQ(to_toml(key, recipe), '"' + word + '"') << key.name;
    }
}

TEST(RecipeKeys, ModelsAreThoseOfTheNetworks) {
  const auto refusal = core::complaint_of([] { static_cast<void>(nn::find_model("none")); });
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->problem().expected, fmt::format("one of {}", fmt::join(core::names_of(models), ", ")));
}

}  // namespace
}  // namespace lockstep::training
