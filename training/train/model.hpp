// A recipe's model on its data: the network, checked against the data.
// Invariant: anything that does not fit is found here, before anything is allocated.
// Used by the trainer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nn/executor.hpp"
#include "nn/graph/network.hpp"
#include "parallel/unit_plan.hpp"
#include "training/recipe/cuts.hpp"
#include "training/recipe/recipe.hpp"
#include "training/train/batches.hpp"

namespace lockstep::training {

/// Throws core::Error (usage) if samples are of another kind than model and loss take: ids, numbers or classes.
void check_set(const Recipe& recipe, const data::SetSpec& spec);

/// Throws core::Error (usage) if sizes of the data do not fit the model: of images, of embeddings. Call it after
/// check_set().
[[nodiscard]] nn::Network make_network(const Recipe& recipe, const DataInfo& data);

/// An embedding, and how many ids of each sample it looks up.
struct EmbeddingTable {
  const nn::Embedding* embedding = nullptr;
  std::uint64_t n_ids = 0;
};
/// Returns the first embedding that reads the parameter, nothing if there is none. `network` must outlive the result.
[[nodiscard]] std::optional<EmbeddingTable> find_table(const nn::Network& network, int parameter);

/// Throws core::Error (usage) if training reaches a batch that leaves a single value per channel to a group of batch
/// normalization, in a set of `n_samples`. Call it after check_ranks().
void check_groups(const Recipe& recipe, const nn::Network& network, std::uint64_t n_samples, int n_ranks);

/// Places parameters in the units of parallel::plan_units(), for executors; vectors are in no unit. A unit's number is
/// that in UnitPlan::units, whose options only decide which blocks share a unit, and where parts are cut.
[[nodiscard]] std::vector<nn::Placed> place_in_units(std::span<const nn::Unplaced> parameters,
                                                     const parallel::UnitOptions& options);

/// The forward and backward passes of each rank in a step.
[[nodiscard]] std::uint64_t passes_of_step(const Recipe& recipe, int n_ranks);

/// All executors of a run that share parameters are made for the same number of ranks: GPUs that divide units place
/// parameters so that parts are equal.
[[nodiscard]] nn::ExecutorOptions executor_options(const Recipe& recipe, std::uint64_t max_batch, int n_ranks = 1);

}  // namespace lockstep::training
