// The life of a launcher that this program has started: its signals, its output, and its end.
// Invariant: once an end is requested, it comes in bounded time, and then no process below this one is left.
// Used by relaunch.cpp.
#pragma once

#include "runtime/launcher.hpp"

namespace lockstep::runtime {

/// Starts the launcher and exits like it, or with ExitCode::stalled if no rank starts on this node within the timeout
/// and 10 s more; returns only if it could not be started: the errno.
[[nodiscard]] int supervise_launcher(char* const* words, const LaunchOptions& options);

/// Whether ranks may run on nodes other than this one: launchers use the nodes of a batch job, or of a list; a user's
/// own launcher may do anything.
[[nodiscard]] bool may_be_elsewhere();

}  // namespace lockstep::runtime
