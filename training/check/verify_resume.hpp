// lockstep train --verify-resume: checks whether an interrupted and resumed training ends like an uninterrupted one.
// Invariant: each version is a job of its own, started like --nproc starts any; their files are kept only if they
// differ.
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

/// Makes the recipe deterministic, because otherwise there is nothing to verify. Throws core::Error (usage) if `words`
/// contradict that.
void require_deterministic(RecipeWords& words);

/// Trains, as jobs one after another: without an interruption; until a signal in the middle; and resumed from there, by
/// as many ranks and by another number. Prints their results. Exit code 0: the same bits; 1: not; 128 + a signal that
/// asked for an end. If a job fails, reports it, and returns 2 if that was the job's code, or 3. Throws core::Error
/// (usage) if the run directory exists, or there is no middle.
[[nodiscard]] int verify_resume(const VerifyRequest& request, runtime::JobRunner& jobs);

}  // namespace lockstep::training
