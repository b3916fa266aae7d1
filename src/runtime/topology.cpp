#include "runtime/topology.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "core/error.hpp"
#include "runtime/processor_list.hpp"
#include "runtime/processors.hpp"
#include "runtime/session.hpp"

namespace lockstep::runtime {
namespace {

/// Logical processors this process may run on. The kernel's mask may be larger than cpu_set_t.
std::vector<int> read_allowed_cpus() {
  struct FreeSet {
    void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
  };
  for (int n_cpus = CPU_SETSIZE; n_cpus <= 1 << 20; n_cpus *= 2) {
    const std::unique_ptr<cpu_set_t, FreeSet> set{CPU_ALLOC(static_cast<std::size_t>(n_cpus))};
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(n_cpus));
    if (!set || sched_getaffinity(0, bytes, set.get()) != 0) continue;
    std::vector<int> cpus;
    for (int cpu = 0; cpu < n_cpus; ++cpu)
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
    return cpus;
  }
  core::fail_system("sched_getaffinity failed: cannot tell which processors this process may use");
}

/// Returns the index that all `cpus` share, or -1.
int common_index(const std::vector<Processor>& processors, const std::vector<int>& cpus, int Processor::*index) {
  int common = -1;
  for (const int cpu : cpus) {
    const auto row = std::find_if(processors.begin(), processors.end(), [&](const auto& p) { return p.cpu == cpu; });
    if (row == processors.end() || (common != -1 && (*row).*index != common)) return -1;
    common = (*row).*index;
  }
  return common;
}

/// Collective over a node: one rank reads the table for all, because hwloc is slow if all ranks ask at once.
std::vector<Processor> share_processors(const Communicator& node) {
  std::vector<Processor> processors;
  if (node.rank() == 0) processors = read_processors();
  processors.resize(broadcast_value(node, processors.size()));
  node.broadcast(std::as_writable_bytes(std::span{processors}));
  return processors;
}

/// Collective over a node: gathers its ranks' processors, by rank, at its first rank.
std::vector<std::vector<int>> gather_cpus(const Communicator& node, const std::vector<int>& mine) {
  std::vector<std::vector<int>> all;
  for (const std::string& text : node.gather(format_processors(mine))) all.push_back(parse_processors(text));
  return all;
}

/// What a node offers to its ranks.
struct NodeSize {
  int n_cores = 0;  ///< logical processors if cores are unknown
  int n_cpus = 0;
};

NodeSize measure_node(const std::vector<std::vector<int>>& cpus_of_ranks, const std::vector<Processor>& processors) {
  std::set<int> cpus;
  for (const std::vector<int>& of_rank : cpus_of_ranks) cpus.insert(of_rank.begin(), of_rank.end());
  std::set<int> cores;
  for (const Processor& processor : processors)
    if (processor.core >= 0 && cpus.contains(processor.cpu)) cores.insert(processor.core);
  const auto n_cpus = static_cast<int>(cpus.size());
  return {cores.empty() ? n_cpus : static_cast<int>(cores.size()), n_cpus};
}

/// A rank's report to rank 0, as one line of text.
struct Report {
  Place place;
  int leader = 0;   ///< lowest rank of the node
  NodeSize size{};  ///< reported by its leader only
};

std::string to_text(const Report& report) {
  const Place& p = report.place;
  return fmt::format("{} {} {} {} {} {} {} {} {} {}", report.leader, report.size.n_cores, report.size.n_cpus,
                     p.local_rank, p.socket, p.core, p.numa, p.cache, p.host, format_processors(p.cpus));
}

Report from_text(const std::string& line) {
  Report report;
  Place& p = report.place;
  std::string cpus;
  std::istringstream{line} >> report.leader >> report.size.n_cores >> report.size.n_cpus >> p.local_rank >> p.socket >>
      p.core >> p.numa >> p.cache >> p.host >> cpus;
  p.cpus = parse_processors(cpus);
  return report;
}

/// Collective.
Report describe_this_rank(const Communicator& world) {
  const auto own_node = world.split_shared();
  const Communicator& node = *own_node;
  const std::vector<Processor> processors = share_processors(node);
  Report report;
  Place& place = report.place;
  place.host = host_name();
  place.local_rank = node.rank();
  place.cpus = read_allowed_cpus();
  place.socket = common_index(processors, place.cpus, &Processor::socket);
  place.core = common_index(processors, place.cpus, &Processor::core);
  place.numa = common_index(processors, place.cpus, &Processor::numa);
  place.cache = common_index(processors, place.cpus, &Processor::cache);
  report.leader = broadcast_value(node, world.rank());
  report.size = measure_node(gather_cpus(node, place.cpus), processors);
  return report;
}

/// At rank 0: makes the whole table.
Topology read_reports(const std::vector<std::string>& lines) {
  Topology topology;
  std::map<int, int> node_of_leader;
  for (const std::string& line : lines) {
    Report report = from_text(line);
    const auto [entry, is_new] = node_of_leader.try_emplace(report.leader, static_cast<int>(node_of_leader.size()));
    if (is_new) {
      topology.cores_per_node.push_back(report.size.n_cores);
      topology.cpus_per_node.push_back(report.size.n_cpus);
    }
    report.place.rank = static_cast<int>(topology.places.size());
    report.place.node = entry->second;
    topology.places.push_back(std::move(report.place));
  }
  topology.n_nodes = static_cast<int>(topology.cores_per_node.size());
  return topology;
}

constexpr std::array shared_numbers{&Place::node, &Place::local_rank, &Place::socket,
                                    &Place::core, &Place::numa,       &Place::cache};

/// Collective: shares, as numbers, what all ranks need of rank 0's table.
void share_table(const Communicator& world, Topology& topology) {
  topology.n_nodes = broadcast_value(world, topology.n_nodes);
  for (std::vector<int>* const of_nodes : {&topology.cores_per_node, &topology.cpus_per_node}) {
    of_nodes->resize(static_cast<std::size_t>(topology.n_nodes));
    world.broadcast(std::as_writable_bytes(std::span{*of_nodes}));
  }
  topology.places.resize(static_cast<std::size_t>(world.n_ranks()));
  std::vector<int> numbers;
  for (const Place& place : topology.places)
    for (const auto number : shared_numbers) numbers.push_back(place.*number);
  world.broadcast(std::as_writable_bytes(std::span{numbers}));
  const int* next = numbers.data();
  for (Place& place : topology.places)
    for (const auto number : shared_numbers) place.*number = *next++;
}

}  // namespace

Topology discover_topology(const Communicator& world) {
  const Report mine = describe_this_rank(world);
  Topology topology = read_reports(world.gather(to_text(mine)));
  share_table(world, topology);
  for (int rank = 0; rank < world.n_ranks(); ++rank) topology.places[static_cast<std::size_t>(rank)].rank = rank;
  Place& place = topology.places[static_cast<std::size_t>(world.rank())];
  place.host = mine.place.host;
  place.cpus = mine.place.cpus;
  return topology;
}

std::size_t spare_cores(const Communicator& world) {
  const auto own_node = world.split_shared();
  const Communicator& node = *own_node;
  const std::vector<Processor> processors = share_processors(node);
  const std::vector<int> mine = read_allowed_cpus();
  const std::vector<std::vector<int>> all = gather_cpus(node, mine);
  const auto n_shared = static_cast<std::size_t>(broadcast_value(node, measure_node(all, processors).n_cores));
  std::vector<std::size_t> n_sharing(static_cast<std::size_t>(node.n_ranks()));
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    n_sharing[rank] = static_cast<std::size_t>(
        std::ranges::count_if(all, [&](const std::vector<int>& other) { return have_common(all[rank], other); }));
  node.broadcast(std::as_writable_bytes(std::span{n_sharing}));
  const std::size_t n_fair = n_sharing[static_cast<std::size_t>(node.rank())];
  const std::size_t n_cores = std::min(mine.size(), n_shared);
  return n_cores > n_fair ? (n_cores - n_fair) / n_fair : 0;
}

}  // namespace lockstep::runtime
