// Which core, socket and NUMA node a logical processor belongs to.
// Invariant: one row per logical processor of the node, whether or not this process may use it; no rows if nobody can
// tell.
// Used by topology.cpp only; implemented by topology_hwloc.cpp or no_hwloc.cpp.
#pragma once

#include <vector>

namespace lockstep::runtime {

/// A logical processor by its OS index, and hwloc's logical indices of what contains it; -1 if unknown.
struct Processor {
  int cpu = -1;
  int core = -1;
  int socket = -1;
  int numa = -1;
  int cache = -1;  ///< of the third level
};

[[nodiscard]] std::vector<Processor> read_processors();

}  // namespace lockstep::runtime
