// The parts of script_lint, one for each thing that is looked at.
// Invariant: each adds what it finds; none looks at what another has added.
// Used by script_lint.cpp.
#pragma once

#include <string>
#include <vector>

#include "site/request.hpp"
#include "site/script_lint.hpp"

namespace lockstep::site {

struct Look {
  const JobScript& script;
  const Site& site;
  const Request& request;
  const FileExists& exists;
};

using Findings = std::vector<Finding>;

/// Directives by themselves: names, forms of values, places, placeholders, those that a job must have.
void check_directives(const Look& look, Findings& findings);
/// The form of directives' values.
void check_values(const Look& look, Findings& findings);
/// Against the nodes and limits of the site.
void check_limits(const Look& look, Findings& findings);
/// How ranks are started.
void check_launches(const Look& look, Findings& findings);
/// Variables and commands.
void check_commands(const Look& look, Findings& findings);

/// Whether a launch, or a command by itself, of the script runs reduce_all or lockstep.
[[nodiscard]] bool runs_lockstep(const JobScript& script);

}  // namespace lockstep::site
