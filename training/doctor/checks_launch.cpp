// How ranks were started, and where they run.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/suggest.hpp"
#include "training/doctor/checks.hpp"
#include "training/doctor/mpi_library.hpp"

namespace lockstep::training::doctor {
namespace {

std::string count(std::uint64_t n, std::string_view noun) { return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s"); }

std::string count_ranks(const Job& job) {
  return fmt::format("{} on {}", count(static_cast<std::uint64_t>(job.n_ranks()), "rank"),
                     count(static_cast<std::uint64_t>(job.topology.n_nodes), "node"));
}

std::string fix_for_singletons(const Facts& facts) {
  std::string fix;
  if (facts.launcher == "Slurm srun")
    fix = find_family(facts.mpi_library) == MpiFamily::open_mpi ? "srun --mpi=pmix, if srun --mpi=list has it; else "
                                                                : "srun --mpi=pmi2 or --mpi=cray_shasta; else ";
  return fix +
         fmt::format(
             "start it by {}, the launcher of that MPI, or build lockstep with the MPI of the launcher that you used",
             facts.own_launcher);
}

Finding tell_singletons(const Facts& facts) {
  return {.verdict = Verdict::fail,
          .seen = fmt::format("{} started {} processes, but each runs as a single rank: this program is built with {}, "
                              "which that launcher does not support",
                              facts.launcher.empty() ? "a launcher" : facts.launcher, facts.launched_ranks,
                              name_mpi(facts.mpi_library)),
          .fix = fix_for_singletons(facts)};
}

/// Reports if the number of ranks requested from the batch system differs from MPI's.
std::optional<Finding> compare_with_batch(const Job& job) {
  const Facts& facts = job.ranks.front();
  if (!facts.pbs_complaint.empty())
    return Finding{.verdict = Verdict::warning,
                   .seen = fmt::format("PBS_NODEFILE: {}", facts.pbs_complaint),
                   .fix = "unset PBS_NODEFILE, or set it to the file of PBS, which has a line for each rank"};
  const bool is_slurm = facts.slurm_tasks > 0;
  const int wanted = is_slurm ? facts.slurm_tasks : facts.pbs_lines;
  if (wanted <= 0 || wanted == job.n_ranks()) return std::nullopt;
  const std::string batch =
      is_slurm ? fmt::format("Slurm was asked for {} tasks", wanted) : fmt::format("PBS_NODEFILE has {} lines", wanted);
  if (!job.has_launcher())
    return Finding{.verdict = Verdict::note,
                   .seen = fmt::format("no launcher, so 1 rank; {}", batch),
                   .fix = is_slurm ? "srun lockstep doctor" : "mpiexec lockstep doctor (mpirun of Open MPI)"};
  return Finding{
      .verdict = Verdict::warning,
      .seen = fmt::format("{}: {}, but {}", facts.launcher, count_ranks(job), batch),
      .fix = is_slurm ? "start srun or mpirun without -n, or with the number of --ntasks; --expect-ranks N enforces it"
                      : "start that many ranks: mpirun without tm support needs a hostfile made from PBS_NODEFILE; "
                        "--expect-ranks N enforces it"};
}

int n_cpus_of(const Job& job, int node) {
  const std::vector<const Facts*> nodes = job.nodes();
  const auto index = static_cast<std::size_t>(node);
  return index < nodes.size() ? nodes[index]->node.n_cpus : 0;
}

/// Whether the ranks of the node may use only a part of it.
bool are_confined(const Job& job, int node) {
  return job.topology.cpus_per_node[static_cast<std::size_t>(node)] < n_cpus_of(job, node);
}

Finding judge_fault(const Job& job, const runtime::PlacementFault& fault) {
  using Kind = runtime::PlacementFault::Kind;
  const auto n_likewise = static_cast<std::uint64_t>(fault.n_likewise);
  const std::string likewise = n_likewise > 0 ? fmt::format(" (likewise on {})", count(n_likewise, "other node")) : "";
  Finding finding{.verdict = Verdict::warning, .seen = fault.what + likewise, .fix = fault.fix};
  if (fault.kind == Kind::shared) finding.verdict = Verdict::fail;
  if (fault.kind != Kind::oversubscribed || !are_confined(job, fault.node)) return finding;
  finding.verdict = Verdict::fail;
  finding.seen += fmt::format(", although the node has {}", n_cpus_of(job, fault.node));
  finding.fix +=
      ", or bind them elsewhere: mpirun --bind-to core --map-by core, srun --cpu-bind=cores; ask the batch system for "
      "one core per rank (--cpus-per-task, ncpus)";
  return finding;
}

int n_threads_of(const Job& job) { return job.need ? std::max(job.need->recipe.threads, 1) : 1; }

bool is_fast(const Port& port) { return port.kind != "Ethernet"; }

/// "InfiniBand mlx5_0/1 200 Gb/s, Ethernet eth0": the ports that have a link.
std::string describe_ports(const std::vector<Port>& ports) {
  std::vector<std::string> texts;
  for (const Port& port : ports) {
    std::string text = fmt::format("{} {}", port.kind, port.name);
    if (port.gbps > 0) text += fmt::format(" {:g} Gb/s", port.gbps);
    if (!port.is_active) text += " (down)";
    texts.push_back(text);
  }
  return texts.empty() ? "no network adapter in /sys" : core::join(texts);
}

/// The same adapters at the same rate have the same text, whatever the names of their interfaces.
std::string signature_of(const std::vector<Port>& ports) {
  std::vector<std::string> texts;
  for (const Port& port : ports)
    if (is_fast(port)) texts.push_back(fmt::format("{} {:g} {}", port.kind, port.gbps, port.is_active));
  std::ranges::sort(texts);
  return core::join(texts);
}

bool are_fabrics_alike(const Job& job) {
  const std::vector<const Facts*> nodes = job.nodes();
  return std::ranges::all_of(nodes, [&](const Facts* facts) {
    return signature_of(facts->node.ports) == signature_of(nodes.front()->node.ports);
  });
}

std::string describe_fabrics(const Job& job) {
  Placed<std::string> texts;
  for (const Facts* facts : job.nodes()) texts.emplace_back(facts->host, describe_ports(facts->node.ports));
  return describe(texts);
}

}  // namespace

Finding check_launcher(const Job& job) {
  const Facts& facts = job.ranks.front();
  if (job.is_singletons()) return tell_singletons(facts);
  const int expected = job.request.expect_ranks;
  if (expected > 0 && expected != job.n_ranks())
    return {.verdict = Verdict::fail,
            .seen = fmt::format("{} instead of the {} of --expect-ranks, started by {}", count_ranks(job), expected,
                                job.has_launcher() ? facts.launcher : "no launcher"),
            .fix = "use the launcher of the MPI this program is built with, and check its rank count"};
  if (auto difference = compare_with_batch(job)) return *difference;
  return {.seen = fmt::format("{}, {}", job.has_launcher() ? facts.launcher : "no launcher", count_ranks(job))};
}

Finding check_own_launcher(const Job& job) {
  return for_nodes(job, [&job](const Facts& facts) -> Finding {
    const std::vector<Obstacle>& obstacles = facts.node.obstacles;
    if (obstacles.empty()) return {.seen = facts.own_launcher + ": " + facts.node.launcher};
    std::vector<std::string> seen, fixes;
    for (const Obstacle& one : obstacles) {
      seen.push_back(one.what);
      fixes.push_back(one.fix);
    }
    return {.verdict = job.has_launcher() ? Verdict::note : Verdict::fail,  // because it then exists without one
            .seen = core::join(seen, "\n"),
            .fix = core::join(fixes, "; ")};
  });
}

Finding check_pmi(const Job& job) {
  const Facts& facts = job.ranks.front();
  const std::string library = name_mpi(facts.mpi_library);
  if (facts.pmi.empty() && !job.has_launcher()) return skip("no launcher; this program is built with " + library);
  const std::string offers = facts.pmi.empty() ? "neither PMIx nor PMI" : core::join(facts.pmi, " and ");
  if (job.is_singletons())
    return {.verdict = Verdict::fail,
            .seen = fmt::format("the launcher offers {}, but {} does not use it", offers, library),
            .fix = fix_for_singletons(facts)};
  return {.seen = fmt::format("{} offers {}; {} found all ranks through it",
                              job.has_launcher() ? facts.launcher : "the launcher", offers, library)};
}

Finding check_binding(const Job& job) {
  Finding worst{.seen = job.topology.binding()};
  for (const runtime::PlacementFault& fault : job.topology.faults(n_threads_of(job)))
    if (Finding finding = judge_fault(job, fault); finding.verdict > worst.verdict) worst = std::move(finding);
  return worst;
}

Finding check_quota(const Job& job) {
  Placed<Finding> findings;
  const std::vector<const Facts*> nodes = job.nodes();
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const double quota = nodes[node]->node.cpu_quota;
    const auto n_busy = static_cast<double>(job.n_local(node)) * n_threads_of(job);
    Finding finding{.seen = quota > 0 ? fmt::format("the control group allows {:g} processors", quota) : "no limit"};
    if (quota > 0 && quota < n_busy) {
      finding.verdict = Verdict::warning;
      finding.seen += fmt::format(", but ranks keep {:g} busy: the system throttles them", n_busy);
      finding.fix = "ask for more processors (--cpus-per-task, ncpus, docker --cpus), or start fewer ranks";
    }
    findings.emplace_back(nodes[node]->host, finding);
  }
  return merge(findings);
}

Finding check_fabric(const Job& job) {
  const std::string present = describe_fabrics(job);
  if (job.topology.n_nodes == 1) return skip(fmt::format("one node, so ranks use no network; it has {}", present));
  if (!are_fabrics_alike(job))
    return {.verdict = Verdict::warning,
            .seen = fmt::format("nodes have different fabrics: {}", present),
            .fix = "have the slow or inactive ports repaired, or exclude these nodes (srun --exclude)"};
  const std::vector<Port>& ports = job.ranks.front().node.ports;
  if (std::ranges::none_of(ports, is_fast)) return {.seen = fmt::format("{}; there is no faster fabric", present)};
  if (std::ranges::none_of(ports, [](const Port& port) { return is_fast(port) && port.is_active; }))
    return {.verdict = Verdict::warning,
            .seen = fmt::format("no fast port is up: {}", present),
            .fix = "ask the administrator of the fabric; ibstat or ip link shows the state"};
  const Carrier carrier = find_carrier(job.ranks.front());
  if (carrier.transport == Transport::sockets)
    return {.verdict = Verdict::warning,
            .seen = fmt::format("MPI uses sockets ({}), although there is {}", carrier.why, present),
            .fix = "unset the variable that selects TCP, or load the MPI that the site builds for this fabric"};
  if (carrier.transport == Transport::unknown)
    return {.verdict = Verdict::note,
            .seen = fmt::format("{}; MPI does not report which of them it uses", present),
            .fix = "run reduce_all: a bandwidth far below the fabric's rate means sockets"};
  return {.seen = fmt::format("{}; MPI uses {} ({})", present,
                              carrier.transport == Transport::ucx ? "UCX" : "libfabric", carrier.why)};
}

}  // namespace lockstep::training::doctor
