// The keys of a recipe: one table for file, flags, help and --print-config.
// Invariant: names are unique; a key's default is the member's in Recipe{}.
// Used by the parts of training/recipe/recipe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "training/recipe/recipe.hpp"

namespace lockstep::training {

enum class Section { model, data, batches, optimizer, schedule, machine };
inline constexpr std::array<Section, 6> all_sections{Section::model,     Section::data,     Section::batches,
                                                     Section::optimizer, Section::schedule, Section::machine};
[[nodiscard]] std::string_view title(Section section) noexcept;

using optim::OptimizerSpec;
/// A member of a Recipe, or of its optimizer.
using Member = std::variant<bool Recipe::*, std::uint64_t Recipe::*, int Recipe::*, double Recipe::*,
                            std::string Recipe::*, Length Recipe::*, std::vector<Length> Recipe::*, nn::Loss Recipe::*,
                            data::Order Recipe::*, data::Cache Recipe::*, optim::ScheduleKind Recipe::*,
                            std::optional<nn::Precision> Recipe::*, std::optional<Strategy> Recipe::*, Graph Recipe::*,
                            optim::OptimizerKind OptimizerSpec::*, double OptimizerSpec::*, bool OptimizerSpec::*>;

template <class AnyRecipe, class T, class Whole>
[[nodiscard]] auto& value_at(T Whole::*member, AnyRecipe& recipe) noexcept {
  if constexpr (std::is_same_v<Whole, Recipe>)
    return recipe.*member;
  else
    return recipe.optimizer.*member;
}

/// The limit of whole numbers: 2^53, so that they are exact in any format.
inline constexpr double most_count = 9007199254740992.0;

struct Range {
  double least = 0;
  double most = std::numeric_limits<double>::max();
  bool excludes_least = false;
  bool excludes_most = false;

  [[nodiscard]] bool has(double value) const noexcept;  ///< false for NaN
};

/// A rule for a text, unless it names a row of a table.
enum class TextRule { not_empty, any, augmentation };

/// A key applies only with some words of another key: momentum with the optimizers sgd and lars.
struct Use {
  std::string_view selector{};
  std::string_view words{};  ///< separated by spaces; empty: no condition
};

struct Key {
  std::string_view name;
  Section section;
  std::string_view help;
  Member member;
  std::string_view placeholder;  ///< of its value in the help; none for booleans
  Range range{};
  std::vector<std::string> (*names)() = nullptr;  ///< of the table whose rows it names; for texts
  TextRule rule = TextRule::not_empty;
  std::string_view default_text = "";  ///< for the help, if the member's default is not enough
  Use use{};
  std::string_view instead_of = "";  ///< the key that this one replaces

  [[nodiscard]] constexpr bool is_boolean() const noexcept {
    return std::holds_alternative<bool Recipe::*>(member) || std::holds_alternative<bool OptimizerSpec::*>(member);
  }
};

[[nodiscard]] std::span<const Key> all_keys() noexcept;
/// Index into all_keys().
[[nodiscard]] std::optional<std::size_t> find_key(std::string_view name) noexcept;
[[nodiscard]] std::vector<std::string> key_names();
/// The words of its values, or the names of its table's rows; none if it takes other texts or numbers.
[[nodiscard]] std::vector<std::string> words_of(const Key& key);

/// Returns the condition that `recipe` does not meet, so that `key` has no effect; nullptr if it has an effect.
[[nodiscard]] const Use* find_misfit(const Key& key, const Recipe& recipe);

}  // namespace lockstep::training
