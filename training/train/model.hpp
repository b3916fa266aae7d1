// A recipe's model on its data: the network, checked against what the data is.
// Invariant: whatever does not fit is found here, before anything is allocated.
// Used by the trainer.
#pragma once

#include "nn/executor.hpp"
#include "nn/network.hpp"
#include "training/train/batches.hpp"
#include "training/train/recipe.hpp"

namespace lockstep::training::train {

/// Throws core::Error (usage) if the data has not what the model takes: classes, kind of input, size of images.
[[nodiscard]] nn::Network make_network(const Recipe& recipe, const DataInfo& data);

/// Throws core::Error (usage) if batch, groups, lanes or order cannot be dealt to so many ranks.
void check_ranks(const Recipe& recipe, int n_ranks);

/// Ranks whose parts of a batch make up one group of batch normalization; 1 if a rank's part is made up of groups.
[[nodiscard]] int ranks_of_group(const Recipe& recipe, int n_ranks) noexcept;

/// Samples of this rank that go through the network at a time, at most.
[[nodiscard]] std::uint64_t samples_at_a_time(const Recipe& recipe, std::uint64_t most_of_rank, int n_ranks) noexcept;

[[nodiscard]] nn::ExecutorOptions executor_options(const Recipe& recipe, std::uint64_t max_batch) noexcept;

}  // namespace lockstep::training::train
