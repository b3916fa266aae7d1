// What a run would need: memory, steps, traffic, reading; found out without a step.
// Invariant: memory is what the process has already, network and arenas included, and what a step would touch first.
// Used by the trainer for --dry-run.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/communicator.hpp"
#include "runtime/topology.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/record.hpp"
#include "training/train/batches.hpp"
#include "training/train/learner.hpp"

namespace lockstep::training {

struct DryRun {
  std::uint64_t n_ranks = 1, n_nodes = 1;
  std::uint64_t n_parameters = 0;
  std::uint64_t n_multiply_adds = 0;  ///< of one sample, forward
  std::uint64_t n_epoch_steps = 0, n_steps = 0, n_samples = 0;
  std::uint64_t most_samples_of_rank = 0;  ///< of a step
  std::uint64_t memory_bytes = 0;          ///< of the rank that needs most
  std::uint64_t activation_bytes = 0, arena_bytes = 0;
  std::uint64_t network_bytes = 0;  ///< of a step, all ranks together
  std::uint64_t shared_bytes = 0;   ///< of a step, read from other ranks of a node, all ranks together
  std::uint64_t read_bytes = 0;     ///< of an epoch, all ranks together
};

/// A learner for this needs to be for no more samples of a rank.
inline constexpr std::uint64_t most_tried = 256;

/// Collective: complete on rank 0. `learner`: for all samples of a rank in a batch, or the first most_tried of them.
[[nodiscard]] DryRun plan_run(const runtime::Communicator& world, const runtime::Topology& topology, nn::Device& device,
                              const Recipe& recipe, Batches& batches, Learner& learner, const Goal& goal);

[[nodiscard]] std::string dry_run_text(const DryRun& plan);

}  // namespace lockstep::training
