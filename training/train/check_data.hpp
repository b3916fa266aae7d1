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

/// Refuses an epoch without a batch.
void check_batches(const ResolvedRecipe& resolved, const Batches& training);

/// `training`: null if the run only evaluates. Refuses a requested `evaluation` that is missing (null), and samples
/// with another shape than those of training.
void check_evaluation(const ResolvedRecipe& resolved, const Batches* training, const Batches* evaluation);

/// Differences between the run and what a reader of its recipe and flags expects, one sentence each. `training` and
/// `evaluation`: null if there is none; `has_weights`: from a file.
[[nodiscard]] std::vector<std::string> surprises(const ResolvedRecipe& resolved, const Goal& goal,
                                                 const Batches* training, const Batches* evaluation, bool has_weights);
/// The same about the processor.
[[nodiscard]] std::vector<std::string> surprises(const nn::Executor& executor);

}  // namespace lockstep::training
