// Whether the flags of a command line fit together.
// Invariant: pure; flags that would have no effect are refused.
// Used by options.cpp, after parsing.
#pragma once

#include "core/flags.hpp"
#include "reduce_all/options.hpp"

namespace lockstep::reduce_all {

/// Throws core::Error (usage) that names the flags.
void check(const core::Flags& flags, const Options& options);

}  // namespace lockstep::reduce_all
