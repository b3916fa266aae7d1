// The file in /dev/shm by which Open MPI shares a rank's memory on its node; it stays if rank and launcher are killed.
// Invariant: removes only the file that the rank itself has mapped, identified by device and inode.
// Used by guard.cpp.
#pragma once

#include <sys/types.h>

#include <array>

namespace lockstep::runtime {

/// May be in memory that rank and guard share.
struct MpiSegment {
  std::array<char, 256> path{};  ///< empty: there is none
  dev_t device = 0;
  ino_t inode = 0;
};

/// Returns the segment of this process, which is the `local_rank`th of its node. Call this once MPI has started.
[[nodiscard]] MpiSegment find_mpi_segment(int local_rank);

/// Removes what that process left. Call this once it has ended.
void remove_if_left(const MpiSegment& segment) noexcept;

}  // namespace lockstep::runtime
