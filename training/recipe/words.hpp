// The words of a recipe for which no other folder has a table, and what follows from them.
// Invariant: a word outside its table never enters a Recipe; `models` has the names of nn::models().
// Used by the parts of training/recipe/recipe.
#pragma once

#include <array>
#include <string_view>

namespace lockstep::training {

struct ModelWord {
  std::string_view name;
  std::string_view loss;       ///< the usual one for training it
  std::string_view synthetic;  ///< the fitting kind of data::synthesizers
  bool has_batch_norm = false;
};
inline constexpr std::array<ModelWord, 8> models{{
    {"toy", "mse", "toy"},
    {"mnist_cnn", "cross_entropy", "digits"},
    {"resnet18", "cross_entropy", "images", true},
    {"resnet34", "cross_entropy", "images", true},
    {"resnet50", "cross_entropy", "images", true},
    {"resnet101", "cross_entropy", "images", true},
    {"resnet152", "cross_entropy", "images", true},
    {"movielens", "mse", "ratings"},
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

/// Flags that are not keys: training/run/options.cpp and training/train/train.cpp declare them.
inline constexpr std::array<std::string_view, 22> words_of_runs{
    "nproc",       "expect-ranks",  "verbose",      "run-dir",       "init-from", "resume",  "resume-anyway", "keep",
    "keep-epochs", "time-limit",    "save-weights", "evaluate-only", "compat",    "dry-run", "profile",       "timeout",
    "digest",      "verify-resume", "replay",       "device",        "share-gpu", "autotune"};

inline constexpr std::array<std::string_view, 3> losses{"cross_entropy", "nll", "mse"};
inline constexpr std::array<std::string_view, 4> precisions{"auto", "f32", "bf16", "f16"};
inline constexpr std::array<std::string_view, 1> strategies{"ddp"};
inline constexpr std::array<std::string_view, 3> graphs{"step", "compute", "off"};

}  // namespace lockstep::training
