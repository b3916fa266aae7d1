// Memory that processes of one node share: a file without a name in /dev/shm, mapped by all.
// Invariant: all ranks get it or all throw the same error, whatever any one of them lacks; once there, no access fails.
// Used by communicator_mpi.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// Collective over ranks of one node: `bytes` for each rank. Not an MPI window: where one rank cannot make its part of
/// a window, some MPI libraries let the others wait for it for ever (Open MPI 4.1.4). Throws core::Error (system).
[[nodiscard]] std::unique_ptr<SharedSegment> share_on_node(const Communicator& node, std::size_t bytes);

}  // namespace lockstep::runtime
