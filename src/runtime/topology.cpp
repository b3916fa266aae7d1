#include "runtime/topology.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "core/error.hpp"
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

/// "0-3,8": the kernel's list format.
std::string format_cpus(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return text;
}

std::vector<int> parse_cpus(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream ranges{text};
  for (std::string range; std::getline(ranges, range, ',');) {
    const char* const end = range.data() + range.size();
    int first = 0;
    const char* const dash = std::from_chars(range.data(), end, first).ptr;
    int last = first;
    if (dash != end) std::from_chars(dash + 1, end, last);
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

/// The index all `cpus` share, or -1.
int common_index(const std::vector<Processor>& processors, const std::vector<int>& cpus, int Processor::*index) {
  int common = -1;
  for (const int cpu : cpus) {
    const auto row = std::find_if(processors.begin(), processors.end(), [&](const auto& p) { return p.cpu == cpu; });
    if (row == processors.end() || (common != -1 && (*row).*index != common)) return -1;
    common = (*row).*index;
  }
  return common;
}

/// Collective over a node: the table of one rank for all, since hwloc is slow when all ranks ask at once.
std::vector<Processor> share_processors(const Communicator& node) {
  std::vector<Processor> processors;
  if (node.rank() == 0) processors = read_processors();
  processors.resize(broadcast_value(node, processors.size()));
  node.broadcast(std::as_writable_bytes(std::span{processors}));
  return processors;
}

/// Collective over a node: cores in reach of any of its ranks (logical processors where cores are unknown), at its first
/// rank; 0 at the others.
int count_usable_cores(const Communicator& node, const std::vector<Processor>& processors,
                       const std::vector<int>& my_cpus) {
  std::set<int> cpus;
  for (const std::string& text : node.gather(format_cpus(my_cpus)))
    for (const int cpu : parse_cpus(text)) cpus.insert(cpu);
  std::set<int> cores;
  for (const Processor& processor : processors)
    if (processor.core >= 0 && cpus.contains(processor.cpu)) cores.insert(processor.core);
  return static_cast<int>(cores.empty() ? cpus.size() : cores.size());
}

/// What a rank tells the others, as one line of text.
struct Report {
  Place place;
  int leader = 0;   ///< lowest rank of the node
  int n_cores = 0;  ///< of the node; told by its leader only
};

std::string to_text(const Report& report) {
  const Place& p = report.place;
  return fmt::format("{} {} {} {} {} {} {} {} {}", report.leader, report.n_cores, p.local_rank, p.socket, p.core,
                     p.numa, p.cache, p.host, format_cpus(p.cpus));
}

Report from_text(const std::string& line) {
  Report report;
  Place& p = report.place;
  std::string cpus;
  std::istringstream{line} >> report.leader >> report.n_cores >> p.local_rank >> p.socket >> p.core >> p.numa >>
      p.cache >> p.host >> cpus;
  p.cpus = parse_cpus(cpus);
  return report;
}

/// Collective.
Report describe_this_rank(const Communicator& world) {
  const Communicator node = world.split_shared();
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
  report.n_cores = count_usable_cores(node, processors, place.cpus);
  return report;
}

}  // namespace

Topology discover_topology(const Communicator& world) {
  std::string lines;
  for (const std::string& line : world.gather(to_text(describe_this_rank(world)))) lines += line + '\n';
  std::istringstream all{world.broadcast(lines)};

  Topology topology;
  std::map<int, int> node_of_leader;
  for (std::string line; std::getline(all, line);) {
    Report report = from_text(line);
    const auto [entry, is_new] = node_of_leader.try_emplace(report.leader, static_cast<int>(node_of_leader.size()));
    if (is_new) topology.cores_per_node.push_back(report.n_cores);
    report.place.rank = static_cast<int>(topology.places.size());
    report.place.node = entry->second;
    topology.places.push_back(std::move(report.place));
  }
  topology.n_nodes = static_cast<int>(topology.cores_per_node.size());
  return topology;
}

std::size_t spare_cores(const Communicator& world) {
  const Topology topology = discover_topology(world);
  const Place& mine = topology.places[static_cast<std::size_t>(world.rank())];
  const auto shares_with_me = [&](const Place& other) {
    return other.node == mine.node && std::find_first_of(mine.cpus.begin(), mine.cpus.end(), other.cpus.begin(),
                                                         other.cpus.end()) != mine.cpus.end();
  };
  const auto n_sharing =
      static_cast<std::size_t>(std::count_if(topology.places.begin(), topology.places.end(), shares_with_me));
  const std::size_t n_cores = std::min(
      mine.cpus.size(), static_cast<std::size_t>(topology.cores_per_node[static_cast<std::size_t>(mine.node)]));
  return n_cores > n_sharing ? (n_cores - n_sharing) / n_sharing : 0;
}

}  // namespace lockstep::runtime
