// Settings in the environment for NCCL, libfabric, UCX and MPI.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/suggest.hpp"
#include "site/variables.hpp"
#include "training/doctor/checks.hpp"

namespace lockstep::training::doctor {
namespace {

constexpr std::size_t most_told = 8;

Verdict verdict_of(site::Severity severity) noexcept {
  switch (severity) {
    case site::Severity::error: return Verdict::fail;
    case site::Severity::warning: return Verdict::warning;
    case site::Severity::note: break;
  }
  return Verdict::note;
}

site::Fabric fabric_of(const Facts& facts) {
  const auto has = [&facts](std::string_view kind) {
    return std::ranges::find(facts.node.ports, kind, &Port::kind) != facts.node.ports.end();
  };
  if (has("Slingshot")) return site::Fabric::slingshot;
  return has("InfiniBand") ? site::Fabric::infiniband : site::Fabric::unknown;
}

/// Whether MPI or its networks read the variable. This program does not read the others, such as NCCL's, so a mistake
/// in them does not stop its own job; neither does an unknown name.
bool reaches_mpi(const site::Variable& variable) {
  constexpr std::array<std::string_view, 7> prefixes{"OMPI_", "PMIX_", "PRTE_", "MPICH_", "FI_", "UCX_", "PALS_"};
  return site::is_known_variable(variable.name) &&
         std::ranges::any_of(prefixes, [&](std::string_view prefix) { return variable.name.starts_with(prefix); });
}

/// The findings of all ranks, each once, the worst first.
std::vector<site::Finding> lint(const Job& job) {
  const site::Fabric fabric = fabric_of(job.ranks.front());
  std::set<std::map<std::string, std::string>> environments;
  for (const Facts& facts : job.ranks) environments.insert(facts.variables);
  std::vector<site::Finding> all;
  for (const auto& environment : environments)
    for (const site::Finding& finding : slips_in(environment, fabric))
      if (std::ranges::find(all, finding) == all.end()) all.push_back(finding);
  std::ranges::stable_sort(all, {}, &site::Finding::severity);
  return all;
}

}  // namespace

std::vector<site::Finding> slips_in(const std::map<std::string, std::string>& environment, site::Fabric fabric) {
  std::vector<site::Variable> variables;
  for (const auto& [name, value] : environment) variables.push_back({.name = name, .value = value});
  std::vector<site::Finding> all = site::lint_environment(variables, fabric);
  std::erase_if(variables, [](const site::Variable& variable) { return !reaches_mpi(variable); });
  const std::vector<site::Finding> of_mpi = site::lint_environment(variables, fabric);
  for (site::Finding& finding : all)
    if (finding.severity == site::Severity::error && std::ranges::find(of_mpi, finding) == of_mpi.end())
      finding.severity = site::Severity::warning;
  return all;
}

Finding check_environment(const Job& job) {
  const std::vector<site::Finding> all = lint(job);
  if (all.empty()) return {.seen = fmt::format("no mistake in {} variables", job.ranks.front().variables.size())};
  std::vector<std::string> seen, fixes;
  for (const site::Finding& finding : all) {
    if (seen.size() == most_told) break;
    seen.push_back(finding.why.empty() ? finding.what : finding.what + ": " + finding.why);
    if (!finding.fix.empty()) fixes.push_back(finding.fix);
  }
  if (all.size() > most_told) seen.push_back(std::to_string(all.size() - most_told) + " more");
  return {.verdict = verdict_of(all.front().severity),
          .seen = core::join(seen, "\n"),
          .fix = fixes.empty() ? "nothing, if this is intended" : core::join(fixes, "; ")};
}

}  // namespace lockstep::training::doctor
