// The command `lockstep train`.
// Invariant: as every command: parsing makes no MPI call.
// Used by training/command.
#pragma once

#include <string>
#include <vector>

#include "core/clock.hpp"
#include "runtime/session.hpp"
#include "runtime/watch/watchdog.hpp"
#include "training/command.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/options.hpp"

namespace lockstep::training {

/// `arguments`: after "train".
[[nodiscard]] Invocation parse_train(const std::vector<std::string>& arguments);

/// Collective: trains, evaluates or tells what that would need, as `options` ask; the exit code. `clock`: as Trainer
/// has it.
[[nodiscard]] int train(ResolvedRecipe resolved, const RunOptions& options, const runtime::Session& session,
                        runtime::Watchdog& watchdog, const core::Clock& clock = core::real_clock());

}  // namespace lockstep::training
