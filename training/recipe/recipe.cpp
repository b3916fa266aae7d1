#include "training/recipe/recipe.hpp"

#include <algorithm>
#include <cmath>

#include "core/suggest.hpp"
#include "training/recipe/find.hpp"
#include "training/recipe/merged_settings.hpp"
#include "training/recipe/toml.hpp"
#include "training/recipe/value.hpp"
#include "training/recipe/words.hpp"

namespace lockstep::training {
namespace {

constexpr std::array<std::string_view, 2> number_keys{"epochs", "save-every"};

std::string flag_of(std::string_view key) { return fmt::format("--{}", key); }

Origin typed(const std::string& flag) { return {Level::command_line, "flag " + flag, flag, true}; }

void keep(RecipeWords& words, std::string_view key, const std::string& flag, const std::string& text) {
  words.settings.push_back({.key = std::string{key}, .text = text, .origin = typed(flag)});
}

std::string default_of(const Key& key) {
  if (!key.default_text.empty()) return std::string{key.default_text};
  const std::string word = to_word(key, Recipe{});
  if (!key.is_boolean()) return word;
  return word == "true" ? "on" : "off";
}

core::Help help_of(const Key& key) {
  std::string help{key.help};
  if (help.empty())  // the words that it goes with say enough
    for (const char letter : key.use.words) help += letter == ' ' ? ", " : std::string(1, letter);
  if (const auto words = words_of(key); !words.empty()) help += (help.empty() ? "" : ": ") + core::join(words);
  return {help, default_of(key)};
}

void declare_key(core::Flags& flags, const Key& key, RecipeWords& words) {
  const std::string flag = flag_of(key.name);
  if (key.is_boolean()) {
    const std::string no_flag = fmt::format("--no-{}", key.name);
    flags.action(flag, help_of(key), [&words, &key, flag] { keep(words, key.name, flag, "true"); });
    flags.action(no_flag, {}, [&words, &key, no_flag] { keep(words, key.name, no_flag, "false"); });
  } else {
    flags.value(fmt::format("{} {}", flag, key.placeholder), help_of(key),
                [&words, &key, flag](const std::string& text) { keep(words, key.name, flag, text); });
  }
}

// --arch, as in the tutorials: a ResNet by its depth.
void declare_arch(core::Flags& flags, RecipeWords& words) {
  flags.value("--arch", [&words](const std::string& text) {
    const bool is_depth = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    keep(words, "model", "--arch", is_depth ? "resnet" + text : text);
  });
}

// The tutorials' other flags are not keys here; the refusal names ours.
void declare_foreign(core::Flags& flags, RecipeWords& words) {
  for (const ForeignWord& word : foreign_words) {
    std::string spelling{word.name};
    std::replace(spelling.begin(), spelling.end(), '-', '_');
    for (const std::string& flag : {fmt::format("--{}", word.name), "--" + spelling})
      flags.value(flag, [&words, flag](const std::string& text) {
        words.settings.push_back({.key = flag.substr(2), .text = text, .origin = typed(flag), .key_where = flag});
      });
  }
}

std::vector<Setting> settings_of(const RecipeWords& words) {
  if (words.numbers.size() > number_keys.size())
    core::fail_usage({.what = fmt::format("unexpected argument '{}'", words.numbers[number_keys.size()]),
                      .where = "lockstep train",
                      .expected = "RECIPE [EPOCHS [SAVE-EVERY]], then flags",
                      .fix = "--help explains it"});
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < words.numbers.size(); ++i) {
    const std::string note = fmt::format("{} number after the recipe", i == 0 ? "first" : "second");
    settings.push_back({.key = std::string{number_keys[i]},
                        .text = words.numbers[i],
                        .origin = {Level::command_line, note, fmt::format("{}, {}", number_keys[i], note), true}});
  }
  settings.insert(settings.end(), words.settings.begin(), words.settings.end());
  return settings;
}

}  // namespace

std::uint64_t Length::samples(std::uint64_t n_epoch_samples) const noexcept {
  if (unit == Unit::seconds) return 0;
  const double factor = unit == Unit::epochs ? static_cast<double>(n_epoch_samples) : 1.0;
  return static_cast<std::uint64_t>(std::llround(std::min(value * factor, 0x1p62)));
}

void declare_recipe(core::Flags& flags, RecipeWords& words) {
  flags.word("RECIPE", words.recipe);
  flags.words("NUMBER", words.numbers, 0);
  declare_keys(flags, words);
}

void declare_keys(core::Flags& flags, RecipeWords& words) {
  for (const Section section : all_sections) {
    flags.note("\n");
    flags.heading(title(section));
    for (const Key& key : all_keys())
      if (key.section == section) declare_key(flags, key, words);
  }
  declare_arch(flags, words);
  declare_foreign(flags, words);
}

ResolvedRecipe resolve_text(std::string_view text, const std::string& file, const RecipeWords& words) {
  static_cast<void>(quote(file, "the name of the recipe"));
  MergedSettings settings{file};
  settings.put(read_toml(text, file));
  settings.put(settings_of(words));
  return std::move(settings).resolve();
}

ResolvedRecipe resolve_recipe(const RecipeWords& words) {
  const std::string path = find_recipe(words.recipe);
  return resolve_text(read_recipe(path), path, words);
}

}  // namespace lockstep::training
