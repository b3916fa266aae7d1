// A recipe's model on its data: the network, checked against what the data is.
// Invariant: whatever does not fit is found here, before anything is allocated.
// Used by the trainer.
#pragma once

#include "nn/executor.hpp"
#include "nn/network.hpp"
#include "training/recipe/recipe.hpp"
#include "training/train/batches.hpp"

namespace lockstep::training {

/// Throws core::Error (usage) if samples are of another kind than model and loss take: ids, numbers or classes.
void check_set(const Recipe& recipe, const data::SetSpec& spec);

/// Throws core::Error (usage) if sizes of the data do not fit the model: of images, of embeddings. What check_set()
/// refuses must have been refused.
[[nodiscard]] nn::Network make_network(const Recipe& recipe, const DataInfo& data);

/// Throws core::Error (usage) if batch, groups, lanes or order cannot be dealt to so many ranks.
void check_ranks(const Recipe& recipe, int n_ranks);

/// Ranks whose parts of a batch make up one group of batch normalization; 1 if a rank's part is made up of groups.
[[nodiscard]] int ranks_of_group(const Recipe& recipe, int n_ranks) noexcept;

/// A batch is cut for ranks and for their parts at multiples of so many samples: a group of batch normalization, so that
/// groups of a smaller batch have the same samples at any number of ranks. 1 without groups, and for lanes, which are
/// the same at any number of ranks.
[[nodiscard]] std::uint64_t unit_of_cuts(const Recipe& recipe) noexcept;

/// Where part `part` of `n` samples that go through the network one part after another begins.
[[nodiscard]] std::uint64_t begin_of_part(const Recipe& recipe, std::uint64_t n, std::uint64_t part) noexcept;

/// Throws core::Error (usage) if training comes to a batch that leaves a single value per channel to a group of batch
/// normalization, in a set of `n_samples`. What check_ranks() refuses must have been refused.
void check_groups(const Recipe& recipe, const nn::Network& network, std::uint64_t n_samples, int n_ranks);

/// Samples of this rank that go through the network at a time, at most.
[[nodiscard]] std::uint64_t samples_at_a_time(const Recipe& recipe, std::uint64_t most_of_rank, int n_ranks) noexcept;

[[nodiscard]] nn::ExecutorOptions executor_options(const Recipe& recipe, std::uint64_t max_batch) noexcept;

}  // namespace lockstep::training
