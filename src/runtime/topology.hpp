// Where the ranks run: node, socket, core; and faults in their placement.
// Invariant: the same Topology on every rank, except hosts and processors of other ranks, which only rank 0 knows.
// Used by comm/, metrics/, data/load and both programs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// One rank's place.
struct Place {
  int rank = 0;
  std::string host;       ///< only rank 0 has those of other ranks
  int node = 0;           ///< index of the node, in order of the lowest rank on it
  int local_rank = 0;     ///< index among the ranks of the node
  std::vector<int> cpus;  ///< logical processors (OS indices) the rank may run on; as `host`
  int socket = -1;        ///< index of the socket all `cpus` belong to; -1 if several or unknown
  int core = -1;          ///< index of the core all `cpus` belong to; -1 if several or unknown
  int numa = -1;          ///< index of the NUMA node all `cpus` belong to; -1 if several or unknown
  int cache = -1;         ///< index of the third-level cache all `cpus` belong to; -1 if several or unknown
};

/// A fault in the placement of the ranks of one node.
struct PlacementFault {
  enum class Kind {
    oversubscribed,  ///< more ranks, or threads, than processors
    roaming,         ///< ranks that are not bound
    shared           ///< ranks that are bound to processors of one another
  };
  Kind kind = Kind::oversubscribed;
  int node = 0;        ///< the first node that has it
  int n_likewise = 0;  ///< other nodes that also have it
  std::string what{};
  std::string fix{};
};

/// All ranks and what their nodes offer.
struct Topology {
  std::vector<Place> places;        ///< by rank
  std::vector<int> cores_per_node;  ///< physical cores usable by the job, by node
  std::vector<int> cpus_per_node;   ///< logical processors, likewise
  int n_nodes = 1;

  /// More ranks than usable logical processors on some node.
  [[nodiscard]] bool is_oversubscribed() const;
  /// Ranks on the node of `rank`.
  [[nodiscard]] int n_local_ranks(int rank) const;
  /// At rank 0: the host of each node, in node order.
  [[nodiscard]] std::vector<std::string> hosts() const;
  /// At rank 0: "2 ranks on 1 node, each bound to one core" in one line.
  [[nodiscard]] std::string binding() const;
  /// At rank 0: faults that make timings with this placement doubtful, at most one of each kind; empty if there are
  /// none. Ranks compute with `n_threads` threads each.
  [[nodiscard]] std::vector<PlacementFault> faults(int n_threads = 1) const;
  /// At rank 0: the same, one sentence each with the fix.
  [[nodiscard]] std::vector<std::string> warnings(int n_threads = 1) const;
};

/// Collective: finds the place of every rank. Rank 0 makes the table; the others get 24 bytes per rank.
[[nodiscard]] Topology discover_topology(const Communicator& world);

/// Collective: processors of this rank that no rank computes on, shared fairly among the ranks that may use them.
[[nodiscard]] std::size_t spare_cores(const Communicator& world);

}  // namespace lockstep::runtime
