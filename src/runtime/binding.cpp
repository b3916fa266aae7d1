// The member functions of Topology that judge what its placement means for a timing.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "runtime/topology.hpp"

namespace lockstep::runtime {
namespace {

/// Two ranks that may disturb each other.
struct Conflict {
  const Place* first = nullptr;
  const Place* second = nullptr;
};

/// The ranks of one node, and all processors that they may use together.
struct Node {
  std::vector<const Place*> places;
  std::set<int> cpus;

  [[nodiscard]] bool is_oversubscribed(std::size_t n_threads = 1) const {
    return places.size() * n_threads > cpus.size();
  }
};

std::vector<Node> group_by_node(const Topology& topology) {
  std::vector<Node> nodes(static_cast<std::size_t>(topology.n_nodes));
  for (const Place& place : topology.places) {
    Node& node = nodes[static_cast<std::size_t>(place.node)];
    node.places.push_back(&place);
    node.cpus.insert(place.cpus.begin(), place.cpus.end());
  }
  return nodes;
}

/// Whether a rank may run on every processor of the job on the node. With one core there is nowhere to move.
bool is_roaming(const Place& place, const Node& node) {
  return place.core < 0 && node.cpus.size() > 1 && place.cpus.size() == node.cpus.size();
}

/// Returns the first pair of confined ranks that share a processor, or two hardware threads of one core.
std::optional<Conflict> find_conflict(const Node& node) {
  std::map<int, const Place*> first_on_core;
  std::map<int, const Place*> first_on_cpu;
  std::optional<Conflict> found;
  for (const Place* place : node.places) {
    if (is_roaming(*place, node)) continue;
    const auto meet = [&](const Place* earlier) {
      if (earlier != place && (!found || earlier->rank < found->first->rank)) found = {earlier, place};
    };
    if (place->core >= 0) meet(first_on_core.try_emplace(place->core, place).first->second);
    for (const int cpu : place->cpus) meet(first_on_cpu.try_emplace(cpu, place).first->second);
  }
  return found;
}

int count_roaming(const Node& node) {
  return static_cast<int>(std::count_if(node.places.begin(), node.places.end(),
                                        [&](const Place* place) { return is_roaming(*place, node); }));
}

std::string describe(const Conflict& conflict) {
  const Place& a = *conflict.first;
  const Place& b = *conflict.second;
  if (a.core >= 0 && a.core == b.core) return fmt::format("ranks {} and {} share core {}", a.rank, b.rank, a.core);
  const auto cpu = std::find_first_of(a.cpus.begin(), a.cpus.end(), b.cpus.begin(), b.cpus.end());
  return fmt::format("ranks {} and {} share processor {}", a.rank, b.rank, *cpu);
}

std::string count(std::size_t n, const char* noun) { return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s"); }

bool each_has_a_core(const Topology& topology) {
  return std::all_of(topology.places.begin(), topology.places.end(), [](const Place& p) { return p.core >= 0; });
}

using Kind = PlacementFault::Kind;

PlacementFault oversubscribed(const Node& node, std::size_t n_threads) {
  const std::string ranks = count(node.places.size(), "rank"), cpus = count(node.cpus.size(), "processor");
  const std::string& host = node.places.front()->host;
  PlacementFault fault{.kind = Kind::oversubscribed};
  if (node.cpus.size() >= node.places.size()) {
    fault.what = fmt::format("{} runs {} with {} threads each on {}: threads take turns", host, ranks, n_threads, cpus);
    fault.fix = fmt::format(
        "use fewer threads, or bind each rank to more processors: mpirun --map-by slot:PE={}, or srun "
        "--cpus-per-task={}",
        n_threads, n_threads);
  } else {
    fault.what = fmt::format("{} runs {} on {}: ranks take turns, so times measure the scheduler", host, ranks, cpus);
    fault.fix = fmt::format("start at most {} per node", count(node.cpus.size(), "rank"));
  }
  return fault;
}

PlacementFault roaming(const Node& node) {
  return {.kind = Kind::roaming,
          .what = fmt::format("{} of {} on {} not bound, so the system may move them during a measurement",
                              count_roaming(node), count(node.places.size(), "rank"), node.places.front()->host),
          .fix = "bind them: mpirun --bind-to core, or srun --cpu-bind=cores"};
}

PlacementFault shared(const Node& node, const Conflict& conflict) {
  return {.kind = Kind::shared,
          .what = fmt::format("on {}, {}", node.places.front()->host, describe(conflict)),
          .fix = "give each rank a core of its own: mpirun --bind-to core --map-by core, or srun --cpu-bind=cores"};
}

std::vector<PlacementFault> faults_of(const Node& node, std::size_t n_threads) {
  if (node.is_oversubscribed(n_threads)) return {oversubscribed(node, n_threads)};  // no binding can fix that
  std::vector<PlacementFault> faults;
  const bool needs_to_roam = n_threads > 1;  // between processors, because it has several threads
  if (!needs_to_roam && node.places.size() > 1 && count_roaming(node) > 0) faults.push_back(roaming(node));
  if (const auto conflict = find_conflict(node)) faults.push_back(shared(node, *conflict));
  return faults;
}

}  // namespace

bool Topology::is_oversubscribed() const {
  std::vector<int> n_free = cpus_per_node;
  return std::any_of(places.begin(), places.end(),
                     [&](const Place& place) { return --n_free[static_cast<std::size_t>(place.node)] < 0; });
}

int Topology::n_local_ranks(int rank) const {
  const int node = places[static_cast<std::size_t>(rank)].node;
  return static_cast<int>(std::ranges::count(places, node, &Place::node));
}

std::vector<std::string> Topology::hosts() const {
  std::vector<std::string> hosts(static_cast<std::size_t>(n_nodes));
  for (const Place& place : places)
    if (place.local_rank == 0) hosts[static_cast<std::size_t>(place.node)] = place.host;
  return hosts;
}

std::string Topology::binding() const {
  const std::string who = fmt::format("{} on {}", count(places.size(), "rank"), count(cores_per_node.size(), "node"));
  std::size_t n_roaming = 0;
  std::optional<Conflict> conflict;
  for (const Node& node : group_by_node(*this)) {
    n_roaming += static_cast<std::size_t>(count_roaming(node));
    if (!conflict) conflict = find_conflict(node);
  }
  if (n_roaming == places.size()) return who + ", not bound";
  if (n_roaming > 0) return fmt::format("{}, {} of them not bound", who, n_roaming);
  if (conflict) return fmt::format("{}, bound, but {}", who, describe(*conflict));
  return fmt::format("{}, {}bound to its own {}", who, places.size() > 1 ? "each " : "",
                     each_has_a_core(*this) ? "core" : "processors");
}

std::vector<PlacementFault> Topology::faults(int n_threads) const {
  std::map<Kind, PlacementFault> first_of;
  const std::vector<Node> nodes = group_by_node(*this);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (PlacementFault& fault : faults_of(nodes[node], static_cast<std::size_t>(std::max(n_threads, 1)))) {
      fault.node = static_cast<int>(node);
      const auto [first, is_new] = first_of.try_emplace(fault.kind, fault);
      if (!is_new) ++first->second.n_likewise;
    }
  }
  std::vector<PlacementFault> faults;
  for (const auto& [kind, fault] : first_of) faults.push_back(fault);
  return faults;
}

std::vector<std::string> Topology::warnings(int n_threads) const {
  std::vector<std::string> warnings;
  for (const PlacementFault& fault : faults(n_threads)) {
    const auto n_likewise = static_cast<std::size_t>(fault.n_likewise);
    warnings.push_back(fmt::format("{}; {}", fault.what, fault.fix) +
                       (n_likewise > 0 ? fmt::format(" (likewise on {})", count(n_likewise, "other node")) : ""));
  }
  return warnings;
}

}  // namespace lockstep::runtime
