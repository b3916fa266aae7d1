// Memory and traffic of a run, forecast before its first step and measured at its end.
// Invariant: both have the same keys; what is unknown is nothing, never a guess.
// Used by the trainer and the dry run.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/communicator.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/record.hpp"
#include "training/train/batches.hpp"
#include "training/train/learner.hpp"
#include "training/train/memory.hpp"

namespace lockstep::training {

/// The need of a rank whose learner exists; `activations` are those of its executor.
[[nodiscard]] MemoryNeed need_of_learner(const Recipe& recipe, Learner& learner, int n_ranks, std::uint64_t n_local);

/// The peak of this process on a host: what it uses, including arenas, plus what a step touches first. `of_batch`:
/// bytes of a batch that was not loaded yet. `has_saved`: it has saved weights, for which it read all parameters.
[[nodiscard]] std::uint64_t forecast_peak(const MemoryNeed& need, std::uint64_t n_local, std::uint64_t of_batch,
                                          bool has_saved);

/// Collective: complete on rank 0. `nodes`: of all ranks.
[[nodiscard]] UseRecord forecast_use(const runtime::Communicator& world, const std::vector<int>& nodes,
                                     const Recipe& recipe, const Batches& batches, Learner& learner);

/// Collective: complete on rank 0. `communication`: exposed, of all steps, mean over ranks.
[[nodiscard]] UseRecord measure_use(const runtime::Communicator& world, const Recipe& recipe, Learner& learner,
                                    core::Bytes peak, core::Seconds communication);

}  // namespace lockstep::training
