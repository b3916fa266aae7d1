// What a training of --recipe will take, before it runs.
// Invariant: planned as `lockstep train --dry-run` does it; nothing is read of the set but its manifest.
// Used by collect.cpp.
#pragma once

#include "training/doctor/job.hpp"

namespace lockstep::training::doctor {

/// Reads the recipe that `request` names, if it names one. Throws core::Error (usage).
void resolve(Request& request);

/// Fills in `job.need`, for the ranks and nodes there are, or `job.misfit`.
void reckon(Job& job);

}  // namespace lockstep::training::doctor
