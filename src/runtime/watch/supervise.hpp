// The life of a launcher that this program has started: signals to it, words from it, and its end.
// Invariant: once an end is asked for there is one, in bounded time, and then no process below this one is left.
// Used by relaunch.cpp.
#pragma once

#include "runtime/launcher.hpp"

namespace lockstep::runtime {

/// Starts the launcher and ends this program as it ends, or with ExitCode::stalled if it has no rank on this node
/// within the timeout and 10 s more; returns only if it could not be started: the errno.
[[nodiscard]] int supervise_launcher(char* const* words, const LaunchOptions& options);

/// Whether ranks may run on other nodes than this one: launchers take the nodes of a batch job, or of a
/// list, and what a launcher of the user's own does is not known.
[[nodiscard]] bool may_be_elsewhere();

}  // namespace lockstep::runtime
