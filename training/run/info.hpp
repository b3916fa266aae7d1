// What a run is, for its directory.
// Invariant: collective where it says so; nothing of it changes during the run.
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

/// Collective: of the rank that had most in use at a time; on rank 0.
[[nodiscard]] core::Bytes peak_memory(const runtime::Communicator& world);

}  // namespace lockstep::training
