// How the devices of all ranks are connected, in a user's words.
// Invariant: the same on all ranks.
// Used by the programs.
#pragma once

#include <string>

#include "comm/device_plan.hpp"
#include "runtime/communicator.hpp"
#include "runtime/topology.hpp"

namespace lockstep::comm {

struct AllConnections {
  std::string networks{};  ///< "IB", or "IB, Socket" if ranks differ; empty on one node, or if unknown
  int n_channels = 0;      ///< rank 0's
  std::string warning{};   ///< if ranks of several nodes use TCP sockets; else empty
};

/// Collective: `mine` is this rank's DeviceGroup::connection().
[[nodiscard]] AllConnections gather_connections(const runtime::Communicator& world, const runtime::Topology& topology,
                                                const Connection& mine);

}  // namespace lockstep::comm
