// Refusals and warnings about a recipe together with its data, once both are known and before training.
// Invariant: pure functions of what all ranks know, so that all refuse alike; core::Error (usage).
// Used by the trainer.
#pragma once

#include <string>
#include <vector>

#include "nn/executor.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/record.hpp"
#include "training/train/batches.hpp"

namespace lockstep::training {

/// Not one batch in an epoch.
void check_batches(const ResolvedRecipe& resolved, const Batches& training);

/// `training`: null if the run only evaluates. Refuses a missing `evaluation` (null) that was requested, and samples of
/// another shape than the training's.
void check_evaluation(const ResolvedRecipe& resolved, const Batches* training, const Batches* evaluation);

/// What the run does differently from what a reader of its recipe and flags expects, one sentence each. `training` and
/// `evaluation`: null if there is none; `has_weights`: from a file.
[[nodiscard]] std::vector<std::string> surprises(const ResolvedRecipe& resolved, const Goal& goal,
                                                 const Batches* training, const Batches* evaluation, bool has_weights);
/// The same of the processor.
[[nodiscard]] std::vector<std::string> surprises(const nn::Executor& executor);

}  // namespace lockstep::training
