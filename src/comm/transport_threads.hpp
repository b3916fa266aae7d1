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
inline Traffic run_as_threads(const std::vector<int>& nodes, const std::function<void(Transport&)>& body,
                              core::Seconds patience = {30}, const std::vector<Seat>& seats = {}) {
  runtime::ThreadsLayout layout{.nodes = nodes, .patience = patience};
  for (const Seat& seat : seats) layout.sockets.push_back(seat.socket);
  return runtime::run_as_threads(layout, [&](runtime::Communicator& world) {
    const std::vector<int> labels = renumber(nodes);
    Transport transport{
        world.duplicate(),
        {.nodes = labels, .real_nodes = labels, .seats = seats.empty() ? std::vector<Seat>(nodes.size()) : seats}};
    body(transport);
  });
}

}  // namespace lockstep::comm
