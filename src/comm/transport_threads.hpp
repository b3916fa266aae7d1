// Ranks as threads of one process, with the transport that algorithms see.
// Invariant: as runtime/communicator_threads.
// Used by tests (exactness, costs, thread sanitizer).
#pragma once

#include <functional>
#include <vector>

#include "comm/transport.hpp"
#include "runtime/communicator_threads.hpp"

namespace lockstep::comm {

using runtime::Traffic;

/// Runs `body` once per rank, each in its own thread. `nodes[r]` is the simulated node of rank r, `seats[r]` its place
/// there (no seats: all in one place). Rethrows the first failure. A rank that waits in vain for `patience` counts as a
/// failure.
Traffic run_as_threads(const std::vector<int>& nodes, const std::function<void(Transport&)>& body,
                       core::Seconds patience = {30}, const std::vector<Seat>& seats = {});

}  // namespace lockstep::comm
