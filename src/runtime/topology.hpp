// Where the ranks run: node, socket, core; and what is wrong with that.
// Invariant: the same Topology on every rank.
// Used by reduce_all/ (header, warnings, JSON) and comm/ (spinning policy).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// One rank's place.
struct Place {
  int rank = 0;
  std::string host;
  int node = 0;           ///< index of the node, in order of the lowest rank on it
  int local_rank = 0;     ///< index among the ranks of the node
  std::vector<int> cpus;  ///< logical processors (OS indices) this process may run on
  int socket = -1;        ///< index of the socket all `cpus` belong to; -1 if several or unknown
  int core = -1;          ///< index of the core all `cpus` belong to; -1 if several or unknown
  int numa = -1;          ///< index of the NUMA node all `cpus` belong to; -1 if several or unknown
  int cache = -1;         ///< index of the third-level cache all `cpus` belong to; -1 if several or unknown
};

/// All ranks and what their nodes offer.
struct Topology {
  std::vector<Place> places;        ///< by rank
  std::vector<int> cores_per_node;  ///< physical cores usable by the job, by node
  int n_nodes = 1;

  /// More ranks than usable logical processors on some node.
  [[nodiscard]] bool is_oversubscribed() const;
  /// "2 ranks on 1 node, each bound to one core" in one line.
  [[nodiscard]] std::string binding() const;
  /// What makes timings on this placement doubtful, one sentence each with the fix; empty if nothing. Ranks compute with
  /// `n_threads` threads each.
  [[nodiscard]] std::vector<std::string> warnings(int n_threads = 1) const;
};

/// Collective: finds the place of every rank.
[[nodiscard]] Topology discover_topology(const Communicator& world);

/// Collective: processors of this rank that no rank needs, shared fairly with the ranks that may use the same ones.
[[nodiscard]] std::size_t spare_cores(const Communicator& world);

}  // namespace lockstep::runtime
