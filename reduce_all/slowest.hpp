// The slowest rank's times, found by the ranks together.
// Invariant: a rank sends and holds data in proportion to the samples, not to the ranks.
// Used by the sweep, after the timed part of a call.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/transport.hpp"

namespace lockstep::reduce_all {

/// Collective: replaces each of `times`, equally many on every rank, by the maximum over all ranks. Returns how many of
/// them are this rank's own.
[[nodiscard]] std::uint32_t keep_slowest(comm::Transport& transport, std::vector<double>& times);

}  // namespace lockstep::reduce_all
