#include "training/recipe/merged_settings.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/suggest.hpp"
#include "training/recipe/check.hpp"
#include "training/recipe/value.hpp"
#include "training/recipe/words.hpp"

namespace lockstep::training {
namespace {

std::string fix_of(const std::string& key) {
  std::string kebab = key;
  std::replace(kebab.begin(), kebab.end(), '_', '-');
  if (std::ranges::find(words_of_runs, kebab) != words_of_runs.end())
    return fmt::format("it belongs to a run, not to a recipe: use --{} on the command line", kebab);
  std::vector<std::string> foreign;
  for (const ForeignWord& word : foreign_words) foreign.emplace_back(word.name);
  const auto near_foreign = core::near_miss(kebab, foreign);
  for (const ForeignWord& word : foreign_words)
    if (word.name == near_foreign) return fmt::format("it is called '{}' here{}", word.key, word.remark);
  const auto near = core::near_miss(key, key_names());
  return near ? fmt::format("did you mean '{}'?", *near) : "";
}

std::size_t index_of(const Setting& setting) {
  if (const auto index = find_key(setting.key)) return *index;
  const bool is_section = setting.form == Form::table;
  core::fail_usage({.what = fmt::format("unknown {} '{}'", is_section ? "section" : "key", setting.key),
                    .where = setting.key_where,
                    .expected = is_section ? "keys only; a recipe has no [sections]"
                                           : "a key that lockstep train --help lists, without the dashes",
                    .fix = fix_of(setting.key)});
}

std::string listed(std::string_view words) {
  std::string list;
  for (const char c : words) list += c == ' ' ? std::string{", "} : std::string{c};
  return list;
}

bool is_number_of_optimizer(const Key& key) {
  return std::holds_alternative<double OptimizerSpec::*>(key.member) ||
         std::holds_alternative<bool OptimizerSpec::*>(key.member);
}

[[noreturn]] void fail_both(const Origin& a, const Origin& b, std::string_view what) {
  core::fail_usage({.what = std::string{what},
                    .where = fmt::format("{}; {}", a.where, b.where),
                    .expected = "one of the two",
                    .fix = "leave out one"});
}

}  // namespace

MergedSettings::MergedSettings(std::string path) {
  resolved_.path = std::move(path);
  resolved_.origins.resize(all_keys().size());
}

void MergedSettings::put(const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) put(setting);
}

void MergedSettings::put(const Setting& setting) {
  const std::size_t index = index_of(setting);
  const Key& key = all_keys()[index];
  Origin& before = resolved_.origins[index];
  if (before.is_given && before.level == setting.origin.level)
    fail_both(before, setting.origin, fmt::format("{} is given twice", key.name));
  assign(key, setting, resolved_.recipe);
  before = setting.origin;
  if (!key.instead_of.empty() && is_set(key, resolved_.recipe)) make_void(key.instead_of, setting);
}

void MergedSettings::make_void(std::string_view name, const Setting& by) {
  const std::size_t index = *find_key(name);
  const Key& key = all_keys()[index];
  Origin& before = resolved_.origins[index];
  if (!is_set(key, resolved_.recipe)) return;
  if (before.is_given && before.level == by.origin.level)
    fail_both(before, by.origin, fmt::format("{} and {} exclude each other", name, by.key));
  unset(key, resolved_.recipe);
  before = {by.origin.level, fmt::format("because of {}", by.key), by.origin.where, false};
}

// Whether `name` is still to be derived from `selector`.
bool MergedSettings::follow(std::string_view name, std::string_view selector) {
  Origin& own = resolved_.origins[*find_key(name)];
  if (own.is_given) return false;
  const std::size_t index = *find_key(selector);
  const std::string word = to_word(all_keys()[index], resolved_.recipe);
  own = {resolved_.origins[index].level, "default for " + word, "", false};
  return true;
}

void MergedSettings::fill_defaults() {
  Recipe& recipe = resolved_.recipe;
  if (recipe.model.empty())
    core::fail_usage({.what = "the recipe names no model",
                      .where = resolved_.path,
                      .expected = "model = " + expected_of(all_keys()[*find_key("model")]),
                      .fix = "write it into the recipe, or give --model"});
  if (recipe.name.empty()) recipe.name = std::filesystem::path{resolved_.path}.stem().string();
  const ModelWord& model = core::find_named(models, recipe.model, "model", "");
  if (follow("loss", "model")) recipe.loss = model.loss;
  if (follow("lr", "optimizer")) recipe.lr = optim::default_rate(recipe.optimizer.kind);
  const Recipe usual{.optimizer = optim::default_spec(recipe.optimizer.kind)};
  for (const Key& key : all_keys())
    if (is_number_of_optimizer(key) && follow(key.name, "optimizer")) copy_value(key, usual, recipe);
  if (model.has_batch_norm && follow("bn-group", "batch")) recipe.bn_group = least_part(recipe);
}

void MergedSettings::settle_unused() {
  static const Recipe defaults;
  for (std::size_t i = 0; i < all_keys().size(); ++i) {
    const Key& key = all_keys()[i];
    const Use* const misfit = find_misfit(key, resolved_.recipe);
    if (misfit == nullptr) continue;
    const std::size_t selector = *find_key(misfit->selector);
    Origin& own = resolved_.origins[i];
    if (own.is_given && own.level >= resolved_.origins[selector].level)
      core::fail_usage({.what = fmt::format("{} has no effect where {} is {}", key.name, misfit->selector,
                                            to_word(all_keys()[selector], resolved_.recipe)),
                        .where = own.where,
                        .expected = fmt::format("use it only with {}: {}", misfit->selector, listed(misfit->words)),
                        .fix = "leave it out"});
    copy_value(key, defaults, resolved_.recipe);
    own = {};
  }
}

ResolvedRecipe MergedSettings::resolve() && {
  fill_defaults();
  settle_unused();
  check_recipe(resolved_);
  return std::move(resolved_);
}

}  // namespace lockstep::training
