// Memory that MPI ranks of one node share: a file without a name in /dev/shm, mapped by all.
// Invariant: all ranks get it or all throw the same error, whatever any one of them lacks; once there, no access fails.
// Used by transport_mpi.
#pragma once

#include <cstddef>
#include <memory>

#include "comm/transport.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::comm {

/// Collective over ranks of one node: `bytes` for each rank. Not an MPI window: where one rank cannot make its part of
/// a window, some MPI libraries let the others wait for it for ever (Open MPI 4.1.4). Throws core::Error (system).
[[nodiscard]] std::unique_ptr<SharedSegment> share_on_node(const runtime::Communicator& node, std::size_t bytes);

}  // namespace lockstep::comm
