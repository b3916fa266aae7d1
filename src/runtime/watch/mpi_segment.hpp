// The file in /dev/shm by which Open MPI shares a rank's memory with those of its node: it stays where rank and
// launcher are killed.
// Invariant: only the file that the rank itself has mapped is removed, known by device and inode.
// Used by guard.cpp.
#pragma once

#include <sys/types.h>

#include <array>

namespace lockstep::runtime {

/// May lie in memory that rank and guard share.
struct MpiSegment {
  std::array<char, 256> path{};  ///< empty: there is none
  dev_t device = 0;
  ino_t inode = 0;
};

/// That of this process, which is the `local_rank`th of its node; to be called once MPI has started.
[[nodiscard]] MpiSegment find_mpi_segment(int local_rank);

/// Once that process has ended: what it left.
void remove_if_left(const MpiSegment& segment) noexcept;

}  // namespace lockstep::runtime
