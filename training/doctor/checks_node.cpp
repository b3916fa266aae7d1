// Settings of nodes, and limits of a process there.
#include <fmt/format.h>

#include <algorithm>

#include "core/suggest.hpp"
#include "core/units.hpp"
#include "training/doctor/checks.hpp"

namespace lockstep::training::doctor {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

std::string size_of(std::uint64_t bytes) { return bytes == unlimited ? "unlimited" : core::format_decimal({bytes}); }

Finding judge_governor(const Facts& facts) {
  const std::vector<std::string>& governors = facts.node.governors;
  if (governors.empty()) return skip("the system does not report it (a virtual machine, or the firmware decides)");
  const std::string seen = core::join(governors);
  if (seen == "performance") return {.seen = seen};
  return {.verdict = Verdict::warning,
          .seen = fmt::format("{}: processors may run below their full clock", seen),
          .fix = "cpupower frequency-set -g performance, or srun --cpu-freq=performance"};
}

Finding judge_huge_pages(const Facts& facts) {
  const std::string& mode = facts.node.huge_pages;
  if (mode.empty()) return skip("the kernel does not report it");
  if (mode != "never") return {.seen = mode};
  return {.verdict = Verdict::note,
          .seen = "never: large arrays are mapped in small pages",
          .fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding judge_numa_balancing(const Facts& facts) {
  if (facts.node.numa_balancing < 0) return skip("the kernel has none");
  if (facts.node.numa_balancing == 0 || facts.node.n_numa < 2)
    return {.seen = fmt::format("{}, {} NUMA node{}", facts.node.numa_balancing == 0 ? "off" : "on",
                                std::max(facts.node.n_numa, 1), facts.node.n_numa > 1 ? "s" : "")};
  return {.verdict = Verdict::note,
          .seen = fmt::format("on, {} NUMA nodes: pages of bound ranks may be moved while they run", facts.node.n_numa),
          .fix = "sysctl kernel.numa_balancing=0"};
}

/// The finding for the error that `compare` throws.
template <class Compare>
Finding judge_room(const std::string& otherwise, Compare compare) {
  const auto complaint = core::complaint_of(compare);
  if (!complaint) return {.seen = otherwise};
  return {.verdict = Verdict::fail, .seen = complaint->problem().what, .fix = complaint->problem().fix};
}

/// The tightest limits of all ranks.
runtime::LimitsLeft tightest_limits(const Job& job) {
  runtime::LimitsLeft least{unlimited, unlimited};
  for (const Facts& facts : job.ranks) {
    least.address_space = std::min(least.address_space, facts.limits.address_space_left);
    least.data = std::min(least.data, facts.limits.data_left);
  }
  return least;
}

Finding judge_node_memory(const Job& job, std::size_t node, const Facts& facts) {
  const std::uint64_t left = facts.node.memory, n_local = job.n_local(node);
  if (left == 0) return skip("the system does not report how much is left");
  const std::string has = fmt::format("{} left", size_of(left));
  if (!job.need || job.need->of_gpu) return {.seen = has};
  const MemoryNeed& need = job.need->memory.at(n_local);
  return judge_room(
      fmt::format("{}, {} needed by {} rank{} of a node", has, size_of(need.of_node(n_local)), n_local,
                  n_local == 1 ? "" : "s"),
      [&] { compare_memory(job.need->recipe, need, n_local, job.n_ranks(), facts.host, left, tightest_limits(job)); });
}

Finding judge_shared_memory(const Job& job, std::size_t node, const Facts& facts) {
  constexpr std::uint64_t of_docker = 64 * mib;
  const std::uint64_t size = facts.node.shm_size, left = facts.node.shm_free, n_local = job.n_local(node);
  if (size == 0)
    return {.verdict = n_local > 1 ? Verdict::fail : Verdict::note,
            .seen = "there is no /dev/shm, through which ranks of a node share memory",
            .fix = "mount -t tmpfs tmpfs /dev/shm"};
  const std::string has = fmt::format("{} of {} free", size_of(left), size_of(size));
  if (job.need && !job.need->of_gpu && n_local > 1) {
    const MemoryNeed& need = job.need->memory.at(n_local);
    return judge_room(fmt::format("{}, {} needed", has, size_of(need.shared(n_local))),
                      [&] { compare_shared_room(need, n_local, facts.host, left); });
  }
  if (n_local == 1 || left > of_docker) return {.seen = has};
  return {.verdict = Verdict::warning,
          .seen = fmt::format("{}: little for {} ranks", has, n_local),
          .fix = "enlarge it: mount -o remount,size=2G /dev/shm; docker run --shm-size 2g"};
}

bool has_fast_port(const Job& job) {
  const auto is_fast = [](const Port& port) { return port.kind != "Ethernet"; };
  return std::ranges::any_of(job.nodes(),
                             [&](const Facts* facts) { return std::ranges::any_of(facts->node.ports, is_fast); });
}

template <class Judge>
Finding for_numbered_nodes(const Job& job, Judge judge) {
  Placed<Finding> findings;
  const std::vector<const Facts*> nodes = job.nodes();
  for (std::size_t node = 0; node < nodes.size(); ++node)
    findings.emplace_back(nodes[node]->host, judge(job, node, *nodes[node]));
  return merge(findings);
}

}  // namespace

Finding check_governor(const Job& job) { return for_nodes(job, judge_governor); }
Finding check_huge_pages(const Job& job) { return for_nodes(job, judge_huge_pages); }
Finding check_numa_balancing(const Job& job) { return for_nodes(job, judge_numa_balancing); }

Finding check_memory(const Job& job) {
  Finding finding = for_numbered_nodes(job, judge_node_memory);
  if (finding.verdict != Verdict::ok) return finding;
  const std::vector<const Facts*> nodes = job.nodes();
  const auto least = std::ranges::min_element(nodes, {}, [](const Facts* facts) { return facts->node.memory; });
  finding.seen = judge_node_memory(job, static_cast<std::size_t>(least - nodes.begin()), **least).seen;
  if (nodes.size() > 1) finding.seen += fmt::format(", on {}, which has the least", (*least)->host);
  if (!job.need) finding.seen += "; --recipe R adds the need";
  return finding;
}

Finding check_shared_memory(const Job& job) { return for_numbered_nodes(job, judge_shared_memory); }

Finding check_locked_memory(const Job& job) {
  const bool matters = job.topology.n_nodes > 1 && has_fast_port(job);
  return for_ranks(job, [matters](const Facts& facts) -> Finding {
    const std::uint64_t limit = facts.limits.locked_memory;
    if (limit == unlimited || !matters)
      return {.seen = size_of(limit) + (limit == unlimited ? "" : "; no fabric in use needs more")};
    return {.verdict = Verdict::warning,
            .seen = fmt::format("{}: adapters of the fabric cannot register more memory", size_of(limit)),
            .fix =
                "ulimit -l unlimited; under Slurm PropagateResourceLimitsExcept=MEMLOCK and LimitMEMLOCK=infinity "
                "of slurmd, else memlock in /etc/security/limits.conf"};
  });
}

Finding check_open_files(const Job& job) {
  // Shards, sockets and shared memory of the ranks of a node, and files that libraries keep open.
  const std::uint64_t least = 256 + 2 * static_cast<std::uint64_t>(job.n_ranks());
  return for_ranks(job, [least](const Facts& facts) -> Finding {
    const std::uint64_t limit = facts.limits.open_files;
    if (limit == unlimited) return {.seen = "unlimited"};
    if (limit >= least) return {.seen = std::to_string(limit)};
    return {.verdict = Verdict::warning,
            .seen = fmt::format("{} for a process, which may need about {}", limit, least),
            .fix = "ulimit -n 4096, or as many as the hard limit (ulimit -Hn) allows"};
  });
}

Finding check_stack(const Job& job) {
  return for_ranks(job, [](const Facts& facts) -> Finding {
    if (facts.limits.stack >= 2 * mib) return {.seen = size_of(facts.limits.stack)};
    return {.verdict = Verdict::warning,
            .seen = fmt::format("{}: threads of libraries may overflow it", size_of(facts.limits.stack)),
            .fix = "ulimit -s 8192"};
  });
}

Finding check_core_files(const Job& job) {
  return for_ranks(job, [](const Facts& facts) -> Finding {
    if (facts.limits.core_file == 0) return {.seen = "none are written"};
    return {
        .verdict = Verdict::note,
        .seen = fmt::format("a rank that crashes may write {}",
                            facts.limits.core_file == unlimited ? "all its memory" : size_of(facts.limits.core_file)),
        .fix = "ulimit -c 0, unless you want core files"};
  });
}

}  // namespace lockstep::training::doctor
