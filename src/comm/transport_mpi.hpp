// Ranks as MPI processes.
// Invariant: point-to-point messages and shared windows only; no collective of MPI moves data (that is algorithm
// `mpi`).
// Used by the programs, algorithm mpi and data/load/store_cached.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport.hpp"
#include "runtime/communicator.hpp"
#include "runtime/topology.hpp"

namespace lockstep::comm {

struct MpiTransportOptions {
  /// Greater than 0: pretend that every so many ranks of a node are a node of their own.
  int ranks_per_node = 0;
  /// Of `world`, if known: nodes, seats, and whether ranks share cores. Else nodes are found, and seats are unknown.
  const runtime::Topology* topology = nullptr;
  /// Take it that ranks share cores, so that waiting must give the processor away at once.
  bool oversubscribed = false;
};

/// Collective over `world`.
[[nodiscard]] std::unique_ptr<Transport> make_mpi_transport(const runtime::Communicator& world,
                                                            const MpiTransportOptions& options);

/// The communicator behind `transport`, or null if its ranks are no MPI processes.
[[nodiscard]] const runtime::Communicator* mpi_communicator(const Transport& transport) noexcept;

}  // namespace lockstep::comm
