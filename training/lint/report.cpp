#include "training/lint/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/printable.hpp"

namespace lockstep::training::lint {
namespace {

using LintJson = nlohmann::ordered_json;  // keys in the order written here

std::size_t count(const std::vector<Judged>& all, site::Severity severity) {
  std::size_t n = 0;
  for (const Judged& one : all)
    n += static_cast<std::size_t>(std::ranges::count(one.findings, severity, &site::Finding::severity));
  return n;
}

std::string plural(std::size_t n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

std::string line_of(const std::string& file, const site::Finding& finding) {
  std::string text = fmt::format("{}:{}: {}: {}", file, finding.line, site::name(finding.severity), finding.what);
  if (!finding.why.empty()) text += "; " + finding.why;
  if (!finding.fix.empty()) text += fmt::format(" (fix: {})", finding.fix);
  return core::printable(text) + "\n";
}

}  // namespace

bool is_clean(const std::vector<Judged>& all) noexcept {
  return count(all, site::Severity::error) + count(all, site::Severity::warning) == 0;
}

std::string describe(const std::vector<Judged>& all) {
  std::string text;
  for (const Judged& one : all)
    for (const site::Finding& finding : one.findings) text += line_of(one.file, finding);
  std::set<std::string> sites;
  for (const Judged& one : all) sites.insert(one.site);
  return text + fmt::format("{} judged as of {}: {}, {}, {}\n", plural(all.size(), "script"),
                            core::printable(fmt::format("{}", fmt::join(sites, ", "))),
                            plural(count(all, site::Severity::error), "error"),
                            plural(count(all, site::Severity::warning), "warning"),
                            plural(count(all, site::Severity::note), "note"));
}

std::string to_json(const std::vector<Judged>& all) {
  LintJson scripts = LintJson::array();
  for (const Judged& one : all) {
    LintJson findings = LintJson::array();
    for (const site::Finding& finding : one.findings)
      findings.push_back({{"line", finding.line},
                          {"severity", site::name(finding.severity)},
                          {"what", finding.what},
                          {"why", finding.why},
                          {"fix", finding.fix}});
    scripts.push_back({{"file", one.file}, {"site", one.site}, {"findings", findings}});
  }
  LintJson counts;
  for (const site::Severity severity : site::all_severities)
    counts[std::string{site::name(severity)}] = count(all, severity);
  const LintJson json{{"schema", "lockstep.lint"},
                      {"schema_version", 1},
                      {"clean", is_clean(all)},
                      {"counts", counts},
                      {"scripts", scripts}};
  return json.dump(2, ' ', false, LintJson::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::training::lint
