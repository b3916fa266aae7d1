// What Topology's places mean for a timing: the member functions that judge.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "runtime/topology.hpp"

namespace lockstep::runtime {
namespace {

/// Two ranks that may get in each other's way.
struct Conflict {
  const Place* first = nullptr;
  const Place* second = nullptr;
};

/// The ranks of one node, and all processors they may use together.
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

/// Free to roam over every processor the job has on the node. One core leaves nowhere to roam.
bool is_roaming(const Place& place, const Node& node) {
  return place.core < 0 && node.cpus.size() > 1 && place.cpus.size() == node.cpus.size();
}

/// The first pair of confined ranks that overlap: a processor of both, or one core through two hardware threads.
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

std::string warn_oversubscribed(const Node& node, std::size_t n_threads) {
  const std::string what = count(node.places.size(), "rank");
  if (node.cpus.size() >= node.places.size())
    return fmt::format(
        "{} runs {} with {} threads each on {}: they take turns; take fewer threads, or more processors where ranks "
        "are bound to few: mpirun --map-by slot:PE={}, or srun --cpus-per-task={}",
        node.places.front()->host, what, n_threads, count(node.cpus.size(), "processor"), n_threads, n_threads);
  return fmt::format("{} runs {} on {}: they take turns, so times measure the scheduler; start at most {} per node",
                     node.places.front()->host, what, count(node.cpus.size(), "processor"),
                     count(node.cpus.size(), "rank"));
}

std::string warn_roaming(const Node& node) {
  return fmt::format(
      "{} of {} on {} not bound, so the system may move them during a measurement; "
      "bind them: mpirun --bind-to core, or srun --cpu-bind=cores",
      count_roaming(node), count(node.places.size(), "rank"), node.places.front()->host);
}

std::string warn_conflict(const Node& node, const Conflict& conflict) {
  return fmt::format("on {}, {}; give each rank its own: mpirun --bind-to core --map-by core, or srun --cpu-bind=cores",
                     node.places.front()->host, describe(conflict));
}

/// One warning for a defect of several nodes: that of the first, and how many there are.
void add(std::vector<std::string>& warnings, const std::vector<std::string>& by_node) {
  if (by_node.empty()) return;
  const std::size_t n_more = by_node.size() - 1;
  warnings.push_back(by_node.front() +
                     (n_more > 0 ? fmt::format(" (likewise on {})", count(n_more, "other node")) : ""));
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

std::vector<std::string> Topology::warnings(int n_threads) const {
  const auto threads = static_cast<std::size_t>(std::max(n_threads, 1));
  std::vector<std::string> oversubscribed;
  std::vector<std::string> roaming;
  std::vector<std::string> conflicts;
  for (const Node& node : group_by_node(*this)) {
    if (node.is_oversubscribed(threads)) {  // no binding can mend that
      oversubscribed.push_back(warn_oversubscribed(node, threads));
      continue;
    }
    const bool needs_to_roam = threads > 1;  // from processor to processor, as it has several threads
    if (!needs_to_roam && node.places.size() > 1 && count_roaming(node) > 0) roaming.push_back(warn_roaming(node));
    if (const auto conflict = find_conflict(node)) conflicts.push_back(warn_conflict(node, *conflict));
  }
  std::vector<std::string> warnings;
  add(warnings, oversubscribed);
  add(warnings, roaming);
  add(warnings, conflicts);
  return warnings;
}

}  // namespace lockstep::runtime
