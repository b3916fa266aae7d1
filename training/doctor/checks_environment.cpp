// What the environment says to NCCL, libfabric, UCX and MPI.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/suggest.hpp"
#include "site/environment_lint.hpp"
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

/// Of all ranks, each finding once, the worst first.
std::vector<site::Finding> lint(const Job& job) {
  const site::Fabric fabric = fabric_of(job.ranks.front());
  std::set<std::map<std::string, std::string>> environments;
  for (const Facts& facts : job.ranks) environments.insert(facts.variables);
  std::vector<site::Finding> all;
  for (const auto& environment : environments) {
    std::vector<site::Variable> variables;
    for (const auto& [name, value] : environment) variables.push_back({.name = name, .value = value});
    for (const site::Finding& finding : site::lint_environment(variables, fabric))
      if (std::ranges::find(all, finding) == all.end()) all.push_back(finding);
  }
  std::ranges::stable_sort(all, {}, &site::Finding::severity);
  return all;
}

}  // namespace

Finding check_environment(const Job& job) {
  const std::vector<site::Finding> all = lint(job);
  if (all.empty()) return {.seen = fmt::format("no slip in {} variables", job.ranks.front().variables.size())};
  std::vector<std::string> seen, fixes;
  for (const site::Finding& finding : all) {
    if (seen.size() == most_told) break;
    seen.push_back(finding.why.empty() ? finding.what : finding.what + ": " + finding.why);
    if (!finding.fix.empty()) fixes.push_back(finding.fix);
  }
  if (all.size() > most_told) seen.push_back(std::to_string(all.size() - most_told) + " more");
  return {.verdict = verdict_of(all.front().severity),
          .seen = core::join(seen, "\n"),
          .fix = fixes.empty() ? "nothing, if it is meant" : core::join(fixes, "; ")};
}

}  // namespace lockstep::training::doctor
