#include "site/script_lint.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

constexpr std::size_t most_findings = 500;  ///< so that no text takes all memory

using Check = void (*)(const Look&);
constexpr Check checks[]{check_directives, check_options, check_limits,     check_launches, check_nodes,
                         check_programs,   check_signals, check_expansions, check_commands};

}  // namespace

void Look::add(Severity severity, int line, std::string what, std::string why, std::string fix) const {
  if (findings.size() <= most_findings)
    findings.push_back({severity, std::move(what), std::move(why), std::move(fix), line});
}

bool Look::is_directive(int line) const {
  return find_by(script.directives, line, &Flag::line) != nullptr ||
         find_by(script.stray, line, &Line::line) != nullptr;
}

bool Look::has_lookalike(int line) const {
  return std::ranges::any_of(script.unread.odd, [line](const OddCharacter& odd) {
    return odd.line == line && find_lookalike(odd.code) != nullptr;
  });
}

std::optional<long> Look::n_nodes() const {
  long n = 0;
  for (const Chunk& chunk : request.chunks) n += chunk.nodes ? std::min(chunk.nodes->value, 1'000'000L) : 0;
  return n > 0 ? std::optional{n} : std::nullopt;
}

std::vector<Finding> lint_script(const JobScript& script, const Site& site, const FileExists& exists) {
  const Request request = read_request(script);
  std::vector<Finding> findings = lint_environment(script.variables, site.fabric);
  Look look{script, site, request, exists, findings};
  for (const Command& command : script.commands)
    for (const Read& read : reads_of(command)) look.reads.push_back(read);
  for (const Check check : checks) check(look);
  const bool is_cut = findings.size() > most_findings;
  if (is_cut) findings.resize(most_findings);
  for (Finding& finding : findings)
    for (std::string* const text : {&finding.what, &finding.fix}) *text = shown(*text);
  std::ranges::stable_sort(findings, {}, &Finding::line);
  findings.erase(std::unique(findings.begin(), findings.end()), findings.end());
  if (is_cut)
    findings.push_back({Severity::warning, fmt::format("more than {} findings: the others are left out", most_findings),
                        "", "", findings.back().line});
  return findings;
}

}  // namespace lockstep::site
