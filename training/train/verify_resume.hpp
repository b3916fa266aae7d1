// lockstep train --verify-resume: whether a training that is interrupted and resumed ends as one that is not.
// Invariant: each version is a job of its own, started as --nproc starts any; what they wrote is kept only where it
// differs.
// Used by `lockstep train`.
#pragma once

#include "core/units.hpp"
#include "runtime/jobs.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/options.hpp"

namespace lockstep::training {

struct VerifyRequest {
  RecipeWords words{};  ///< of the command line
  ResolvedRecipe resolved{};
  RunOptions options{};
  int n_ranks = 1;
  core::Seconds timeout{};
  bool verbose = false;
};

/// Makes the recipe deterministic, without which there is nothing to verify. Throws core::Error (usage) if `words` say
/// otherwise.
void require_deterministic(RecipeWords& words);

/// Trains, as jobs one after another, without an interruption; until a signal in the middle; and on from there, by as
/// many ranks and by another number. Prints what they end with. Exit code 0: the same bits; 1: not; 128 + a signal that
/// asked for an end. If a job fails, it is told, and the exit code is 2 if that was its own, or 3. Throws core::Error
/// (usage) if the run directory is there, or there is no middle.
[[nodiscard]] int verify_resume(const VerifyRequest& request, runtime::JobRunner& jobs);

}  // namespace lockstep::training
