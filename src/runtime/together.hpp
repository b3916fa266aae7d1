// Errors of one rank become errors of all, so that no rank waits for one that has left.
// Invariant: either all ranks return, or all throw the same error: that of the lowest rank that has one.
// Used by the collective functions of data/.
#pragma once

#include <functional>

#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// Collective: every rank does its `work`, which must not be collective itself. What it throws beside core::Error
/// becomes a core::Error (system); system errors name the rank and its host.
void together(const Communicator& world, const std::function<void()>& work);

}  // namespace lockstep::runtime
