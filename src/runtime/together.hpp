// Turns errors of one rank into errors of all, so that no rank waits for one that has left.
// Invariant: either all ranks return, or all throw the same error: that of the lowest rank that has one.
// Used by collective code that may fail on a single rank.
#pragma once

#include <functional>
#include <optional>

#include "core/error.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// The rank that speaks for all.
struct Speaker {
  int rank = -1;  ///< the lowest rank with an error; -1: none has one
  core::ExitCode code = core::ExitCode::ok;
};

/// Collective: returns the same on all ranks.
[[nodiscard]] Speaker find_speaker(const Communicator& world, const std::optional<core::Error>& mine);

/// Collective, after work that all ranks did: throws on all if a rank has an error. System errors name the rank and its
/// host.
void fail_together(const Communicator& world, const std::optional<core::Error>& mine);

/// Collective: every rank runs its `work`, which must not be collective itself. Exceptions other than core::Error
/// become a core::Error (system); system errors name the rank and its host.
void together(const Communicator& world, const std::function<void()>& work);

}  // namespace lockstep::runtime
