// The needs of training --recipe, before it runs.
// Invariant: planned like `lockstep train --dry-run`; reads only the manifest of the set.
// Used by collect.cpp.
#pragma once

#include "training/doctor/job.hpp"

namespace lockstep::training::doctor {

/// Reads the recipe of `request`, if it has one. Throws core::Error (usage).
void resolve(Request& request);

/// Fills in `job.need` for the present ranks and nodes, or `job.misfit`.
void reckon(Job& job);

}  // namespace lockstep::training::doctor
