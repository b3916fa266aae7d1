// The dry run of a job that is not there: --dry-run --expect-ranks N of a process that is alone.
// Invariant: planned as for a job of N ranks, each on a node of its own or with a GPU of its own like this one. Nothing
// between ranks is measured.
// Used by the dry run.
#pragma once

#include "nn/device.hpp"
#include "nn/graph/network.hpp"
#include "training/recipe/recipe.hpp"
#include "training/train/batches.hpp"
#include "training/train/dry_run.hpp"

namespace lockstep::training {

/// Replaces what `plan`, of one rank, has of ranks. If the strategy of `recipe` was chosen by `auto`, chooses it again.
/// Throws core::Error (usage) if the recipe does not fit so many ranks.
void assume_ranks(DryRun& plan, nn::Device& device, const Recipe& recipe, const nn::Network& network,
                  const Batches& batches, int n_ranks);

}  // namespace lockstep::training
