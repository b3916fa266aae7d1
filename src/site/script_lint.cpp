#include "site/script_lint.hpp"

#include <algorithm>

#include "site/checks.hpp"

namespace lockstep::site {

std::vector<Finding> lint_script(const JobScript& script, const Site& site, const FileExists& exists) {
  const Request request = read_request(script);
  const Look look{script, site, request, exists};
  Findings findings = lint_environment(script.variables, site.fabric);
  check_directives(look, findings);
  check_values(look, findings);
  check_limits(look, findings);
  check_launches(look, findings);
  check_programs(look, findings);
  check_commands(look, findings);
  std::ranges::stable_sort(findings, {}, &Finding::line);
  findings.erase(std::unique(findings.begin(), findings.end()), findings.end());
  return findings;
}

}  // namespace lockstep::site
