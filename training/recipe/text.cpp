// A recipe as text for readers: --print-config, and the help.
#include "core/instruction_sets.hpp"
#include "core/suggest.hpp"
#include "training/recipe/find.hpp"
#include "training/recipe/keys.hpp"
#include "training/recipe/value.hpp"

namespace lockstep::training {
namespace {

// Prints false, too, because a flag may have set it.
bool is_printed(const Key& key, const Recipe& recipe) {
  if (find_misfit(key, recipe) != nullptr) return false;
  const bool may_be_empty = key.is_boolean() || key.rule != TextRule::not_empty;
  return may_be_empty || is_set(key, recipe);
}

constexpr std::string_view examples =
    R"(lockstep train RECIPE [EPOCHS [SAVE-EVERY]] [flags]: train a model from a recipe, data-parallel

  lockstep train toy 50 10 --nproc 2                      the first tutorial: 50 epochs, a checkpoint every 10
  lockstep train digits --deterministic --nproc 4         the same bits of loss and weights for 1, 2 and 4 ranks
  lockstep train mnist_cnn --data m --epochs 3 --nproc 2  train on a set made by `shard import mnist`
  lockstep train cifar_resnet18 --data c --arch 50        another depth; every key of a recipe is a flag
  lockstep train resnet50_synthetic --dry-run             what a run would need, without running it
  lockstep train toy --print-config > mine.toml           a recipe of one's own
  lockstep train mine.toml --lr 0.01 --schedule cosine    and a change to it
)";

constexpr std::string_view explanation = R"(
Flags override the recipe file, which overrides defaults. The numbers after RECIPE are --epochs and --save-every.
A recipe is a name, or a TOML file with lines such as 'weight-decay = 1e-4': flags without their dashes are its keys.
A flag without a value has an opposite, such as --no-drop-last; --arch 50 is --model resnet50. LOCKSTEP_RECIPES may name
a folder of more recipes. Batch, epochs and samples are totals over all ranks.
)";

constexpr std::string_view more_explanation =
    R"(LOCKSTEP_PLAN_CACHE: folder for cached GPU plans (~/.cache/lockstep), or off.
MEAN and STD of images with several channels are one number for all, or one for each as in 0.5/0.4/0.3.
)";

}  // namespace

std::string print_config(const ResolvedRecipe& resolved) {
  std::string text = "# The recipe in effect, with the origin of each value. As a file it is a recipe.\n";
  for (const Section section : all_sections) {
    text += fmt::format("\n# {}\n", title(section));
    for (std::size_t i = 0; i < all_keys().size(); ++i) {
      const Key& key = all_keys()[i];
      if (key.section != section || !is_printed(key, resolved.recipe)) continue;
      const std::string line = fmt::format("{} = {}", key.name, to_toml(key, resolved.recipe));
      text += fmt::format("{:<40} # {}\n", line, resolved.origins[i].note);
    }
  }
  return text;
}

std::string recipe_json(const Recipe& recipe) {
  std::vector<std::string> members;  // TOML's booleans, numbers, texts and lists are JSON's
  for (const Key& key : all_keys())
    if (is_printed(key, recipe)) members.push_back(fmt::format("\"{}\": {}", key.name, to_toml(key, recipe)));
  return fmt::format("{{{}}}", core::join(members));
}

std::string recipe_help() {
  std::string text{examples};
  text += "\nRecipes\n";
  for (const ShippedRecipe& recipe : list_recipes())
    text += fmt::format("  {:<22} {}\n", recipe.name, summary_of(read_recipe(recipe.path)));
  for (const std::string_view part : {explanation, core::instruction_limit_help, more_explanation}) text += part;
  core::Flags flags{""};
  RecipeWords words;
  declare_keys(flags, words);
  return text + flags.help(help_column);
}

}  // namespace lockstep::training
