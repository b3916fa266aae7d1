// The facts of a run for its directory.
// Invariant: collective if marked so; the facts do not change during the run.
// Used by the trainer.
#pragma once

#include <string>
#include <vector>

#include "runtime/communicator.hpp"
#include "runtime/gpu_choice.hpp"
#include "runtime/topology.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/directory.hpp"

namespace lockstep::training {

/// Collective: complete on rank 0.
[[nodiscard]] RunInfo run_info(const runtime::Communicator& world, const runtime::Topology& topology,
                               const runtime::DeviceChoice& device, const ResolvedRecipe& resolved,
                               const std::vector<std::string>& arguments);

/// Collective: the peak memory of the rank that used most; on rank 0.
[[nodiscard]] core::Bytes peak_memory(const runtime::Communicator& world);

}  // namespace lockstep::training
