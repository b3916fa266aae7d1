// Ranks as threads of one process: every algorithm but `mpi` runs here without a launcher, counted and checked.
// Invariant: a deadlock, an unmatched or misfitting message and a rank that throws all end the run with an Error.
// Used by tests (exactness, costs, thread sanitizer).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/transport.hpp"
#include "core/units.hpp"

namespace lockstep::comm {

/// What went over the wire, all ranks and groups together.
struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t shared = 0;       ///< bytes of all shared segments
  std::uint64_t read_across = 0;  ///< bytes that ranks read from shared memory written in another socket
  std::size_t most_read = 0;      ///< the most ranks whose shared memory a single one has read
  std::uint64_t steps = 0;  ///< the longest chain of messages each of which had to arrive before the next was sent
};

/// Runs `body` once per rank, each in a thread of its own; `nodes[r]` is the simulated node of rank r, `seats[r]` where
/// in it that rank runs (no seats: all in one place).
/// Rethrows the first failure. A rank that waits without result for `patience` counts as one.
Traffic run_as_threads(const std::vector<int>& nodes, const std::function<void(Transport&)>& body,
                       core::Seconds patience = {30}, const std::vector<Seat>& seats = {});

}  // namespace lockstep::comm
