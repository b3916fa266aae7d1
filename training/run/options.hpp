// The flags of `lockstep train` besides those of the recipe.
// Invariant: they do not change how a model learns; --init-from sets where learning begins.
// Used by `lockstep train`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/flags.hpp"
#include "core/units.hpp"
#include "runtime/fault.hpp"
#include "runtime/gpu_choice.hpp"
#include "training/recipe/recipe.hpp"

namespace lockstep::training {

/// Members are named like the flags.
struct RunOptions {
  std::vector<std::string> arguments{};  ///< of the program, for run.json
  runtime::DeviceRequest device{};
  std::string run_dir{};
  std::string init_from{};
  std::string resume = "never";   ///< "auto": the newest of the run's folder; else a run's folder or a checkpoint
  std::string save_weights{};     ///< empty: weights.h5 in the run directory
  std::uint64_t keep = 3;         ///< number of checkpoints
  std::uint64_t keep_epochs = 0;  ///< one in this many epochs is kept by name; 0: none
  core::Seconds time_limit{-1};   ///< of the run; 0: none; below 0: the rest of the batch job
  std::shared_ptr<runtime::Drill> drill{};  ///< of --inject; else null
  bool resume_anyway = false;               ///< with another recipe or set
  bool compat = false;
  bool digest = false;
  bool evaluate_only = false;
  bool verify_resume = false;
  bool tune = false;
  bool profile = false;
  bool dry_run = false;
  int assumed_ranks = 0;  ///< of a dry run by a process that is alone, from --expect-ranks; 0: those that there are
  bool print_config = false;
};

/// Parsing fills `options`, which must outlive `flags`.
void declare_run(core::Flags& flags, RunOptions& options);

/// Throws core::Error (usage) if a given flag would have no effect.
void check_run(const RunOptions& options, const ResolvedRecipe& resolved);

}  // namespace lockstep::training
