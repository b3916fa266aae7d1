// The core, socket and NUMA node of each logical processor.
// Invariant: one row per logical processor of the node, whether or not this process may use it; no rows if unknown.
// Used by topology.cpp only; implemented by topology_hwloc.cpp or no_hwloc.cpp.
#pragma once

#include <vector>

namespace lockstep::runtime {

/// A logical processor by its OS index, and hwloc's logical indices of the objects that contain it; -1 if unknown.
struct Processor {
  int cpu = -1;
  int core = -1;
  int socket = -1;
  int numa = -1;
  int cache = -1;  ///< of the third level
};

[[nodiscard]] std::vector<Processor> read_processors();

}  // namespace lockstep::runtime
