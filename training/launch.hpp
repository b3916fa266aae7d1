// What is wrong with how the ranks were started.
// Invariant: one message for all of them; found before any work.
// Used by main().
#pragma once

#include <optional>

#include "core/error.hpp"
#include "runtime/launcher.hpp"

namespace lockstep::training {

/// A launcher of another MPI starts processes that each think they are alone, and would all write the same folder.
[[nodiscard]] std::optional<core::Error> find_singletons(const runtime::LauncherHint& hint, int n_ranks);

/// Throws core::Error (usage) if --nproc contradicts the ranks a launcher has started.
void check_nproc(int nproc, int n_ranks);

}  // namespace lockstep::training
