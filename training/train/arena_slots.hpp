// The slots of an executor's arena, as synchronizers see them.
// Invariant: follow from the network, its executor and the recipe alone, so a forecast has those of the run.
// Used by the learner and by forecasts of memory.
#pragma once

#include <vector>

#include "nn/executor.hpp"
#include "nn/graph/network.hpp"
#include "parallel/slots.hpp"
#include "training/recipe/recipe.hpp"

namespace lockstep::training {

/// Returns the embedding that reads the parameter if summing its touched rows is faster; else null. A tree over ranks
/// sums everything, and other readers of the parameter write all rows.
[[nodiscard]] const nn::Embedding* find_sparse(const nn::Network& network, int parameter, const Recipe& recipe);

/// Whether tables whose touched rows are summed, which stay whole on each node, have more than a quarter of the
/// parameters, so that little is left to divide.
[[nodiscard]] bool has_large_tables(const Recipe& recipe, const nn::Network& network);
/// Throws core::Error (usage) if it has, and the strategy divides parameters.
void check_tables(const Recipe& recipe, const nn::Network& network);

[[nodiscard]] std::vector<parallel::Slot> slots_of(const nn::Network& network, const nn::Executor& executor,
                                                   const Recipe& recipe);

}  // namespace lockstep::training
