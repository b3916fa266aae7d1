// What a run is, for its directory and for the tutorials' lines.
// Invariant: collective where it says so; nothing of it changes during the run.
// Used by the trainer.
#pragma once

#include <string>
#include <vector>

#include "runtime/communicator.hpp"
#include "runtime/topology.hpp"
#include "training/run/compat.hpp"
#include "training/run/directory.hpp"
#include "training/train/batches.hpp"

namespace lockstep::training {

/// Collective: complete on rank 0.
[[nodiscard]] RunInfo run_info(const runtime::Communicator& world, const runtime::Topology& topology,
                               const ResolvedRecipe& resolved, const std::vector<std::string>& arguments);

/// Collective: of the rank that had most in use at a time; on rank 0.
[[nodiscard]] core::Bytes peak_memory(const runtime::Communicator& world);

/// Collective: complete on rank 0.
[[nodiscard]] CompatRun compat_run(const runtime::Communicator& world, const runtime::Topology& topology,
                                   const Recipe& recipe, const Batches& batches, const Batches* evaluation,
                                   std::uint64_t n_epochs);

}  // namespace lockstep::training
