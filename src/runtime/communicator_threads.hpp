// Ranks as threads of one process: code on a Communicator runs here without a launcher, counted and checked.
// Invariant: a deadlock, a message without a match or of another size, and a rank that throws all end the run with an
// Error.
// Used by tests (exactness, costs, sanitizers), through comm/transport_threads if they need a Transport.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/units.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// Message traffic of all ranks and groups together; control operations are not counted.
struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t shared = 0;       ///< bytes of all shared segments
  std::uint64_t read_across = 0;  ///< bytes that ranks read from shared memory written in another socket
  std::size_t most_read = 0;      ///< the greatest number of ranks whose shared memory one rank has read
  std::uint64_t steps = 0;  ///< the longest chain of messages each of which had to arrive before the next was sent
};

/// Where ranks pretend to run.
struct ThreadsLayout {
  std::vector<int> nodes;      ///< by rank
  core::Seconds patience{30};  ///< a rank that waits in vain for this long fails
  std::vector<int> sockets{};  ///< by rank; none: all in one
};

/// Runs `body` once per rank, each in a thread of its own. Rethrows the first failure.
Traffic run_as_threads(const ThreadsLayout& layout, const std::function<void(Communicator&)>& body);

}  // namespace lockstep::runtime
