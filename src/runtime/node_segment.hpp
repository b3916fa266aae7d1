// Memory shared by processes of one node: an unnamed file in /dev/shm, mapped by all.
// Invariant: all ranks get it or all throw the same error, whatever any one of them lacks; once it exists, no access
// fails.
// Used by communicator_mpi.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// Collective over ranks of one node: shares `bytes` for each rank. Not an MPI window: if one rank cannot allocate its
/// part of a window, some MPI libraries let the others wait forever (Open MPI 4.1.4). Throws core::Error (system).
[[nodiscard]] std::unique_ptr<SharedSegment> share_on_node(const Communicator& node, std::size_t bytes);

/// Removes from `folder` the segments of this user's processes that were killed between creating and unlinking them:
/// files named after a process that is gone. Files younger than a minute stay, because their process may run in another
/// container that shares the folder.
void remove_abandoned_segments(const std::string& folder) noexcept;

}  // namespace lockstep::runtime
