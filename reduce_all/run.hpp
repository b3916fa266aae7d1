// The collective part of the program: checks, then the demo or the sweep, then the closing lines.
// Invariant: until the checks are agreed on, a complaint ends all ranks with one message; later errors abort the job.
// Used by main().
#pragma once

#include <optional>

#include "core/error.hpp"
#include "reduce_all/options.hpp"
#include "reduce_all/progress.hpp"
#include "runtime/launcher.hpp"
#include "runtime/session.hpp"

namespace lockstep::reduce_all {

/// Collective: does what the command line asks for and returns the process's exit code, the same on all ranks.
[[nodiscard]] int run(const runtime::Session& session, const CommandLine& line, const runtime::LauncherHint& hint,
                      Progress& progress);

}  // namespace lockstep::reduce_all
