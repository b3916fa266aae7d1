// The words of a recipe: those of values with a fixed set of words, and tables of names.
// Invariant: only these tables relate words to values, for parser, help, files and messages; `models` has the models
// that nn::find_model() knows.
// Used by the parts of training/recipe/recipe, and by texts about a recipe.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "core/flags.hpp"
#include "training/recipe/recipe.hpp"

namespace lockstep::training {

template <class Value>
struct Word {
  std::string_view name;
  Value value;
};

/// The words of `Value`: each entry is a Word, or a value with a name().
template <class Value>
inline constexpr std::nullptr_t word_table = nullptr;
template <>
inline constexpr auto word_table<nn::Loss> = std::array<Word<nn::Loss>, 3>{
    {{"cross_entropy", nn::Loss::cross_entropy}, {"nll", nn::Loss::nll}, {"mse", nn::Loss::mse}}};
template <>
inline constexpr auto word_table<std::optional<nn::Precision>> = std::array<Word<std::optional<nn::Precision>>, 4>{
    {{"auto", std::nullopt}, {"f32", nn::Precision::f32}, {"bf16", nn::Precision::bf16}, {"f16", nn::Precision::f16}}};
template <>
inline constexpr auto word_table<std::optional<Strategy>> = [] {
  std::array<Word<std::optional<Strategy>>, parallel::all_strategies.size() + 1> words{};
  for (std::size_t i = 0; i < parallel::all_strategies.size(); ++i)
    words[i] = {name(parallel::all_strategies[i]), parallel::all_strategies[i]};
  words.back() = {"auto", std::nullopt};
  return words;
}();
template <>
inline constexpr auto word_table<Graph> =
    std::array<Word<Graph>, 3>{{{"step", Graph::step}, {"compute", Graph::compute}, {"off", Graph::off}}};
template <>
inline constexpr auto word_table<data::Order> = data::all_orders;
template <>
inline constexpr auto word_table<data::Cache> = data::all_caches;
template <>
inline constexpr auto word_table<optim::OptimizerKind> = optim::all_optimizer_kinds;
template <>
inline constexpr auto word_table<optim::ScheduleKind> = optim::all_schedule_kinds;

template <class Value>
concept HasWords = requires {
  word_table<Value>.size();
};

template <HasWords Value>
[[nodiscard]] std::string_view word_of(const Value& value) {
  for (const auto& entry : word_table<Value>) {
    if constexpr (requires { entry.name; }) {
      if (entry.value == value) return entry.name;
    } else if (entry == value) {
      return name(entry);
    }
  }
  return "";
}

/// Throws core::Error (usage) as core::find_named().
template <HasWords Value>
[[nodiscard]] Value value_of(std::string_view word, std::string_view kind, std::string_view where) {
  const auto& entry = core::find_named(word_table<Value>, word, kind, where);
  if constexpr (requires { entry.value; })
    return entry.value;
  else
    return entry;
}

struct ModelWord {
  std::string_view name;
  nn::Loss loss;               ///< the usual one for training it
  std::string_view synthetic;  ///< the fitting kind of data::synthesizers
  bool has_batch_norm = false;
};
inline constexpr std::array<ModelWord, 8> models{{
    {"toy", nn::Loss::mse, "toy"},
    {"mnist_cnn", nn::Loss::cross_entropy, "digits"},
    {"resnet18", nn::Loss::cross_entropy, "images", true},
    {"resnet34", nn::Loss::cross_entropy, "images", true},
    {"resnet50", nn::Loss::cross_entropy, "images", true},
    {"resnet101", nn::Loss::cross_entropy, "images", true},
    {"resnet152", nn::Loss::cross_entropy, "images", true},
    {"movielens", nn::Loss::mse, "ratings"},
}};

/// A tutorial's name for a key.
struct ForeignWord {
  std::string_view name;
  std::string_view key;
  std::string_view remark = "";
};
inline constexpr std::array<ForeignWord, 6> foreign_words{{
    {"batch-size", "batch", ", and counts all ranks together"},
    {"learning-rate", "lr"},
    {"num-epochs", "epochs"},
    {"num-workers", "loader-threads"},
    {"random-seed", "seed"},
    {"total-epochs", "epochs"},
}};

/// Flags that are not keys: training/run/options.cpp and training/train.cpp declare them.
inline constexpr std::array<std::string_view, 22> words_of_runs{
    "nproc",       "expect-ranks",  "verbose",      "run-dir",       "init-from", "resume",  "resume-anyway", "keep",
    "keep-epochs", "time-limit",    "save-weights", "evaluate-only", "compat",    "dry-run", "profile",       "timeout",
    "digest",      "verify-resume", "replay",       "device",        "share-gpu", "autotune"};

}  // namespace lockstep::training
