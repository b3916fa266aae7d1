// The parts of script_lint, one for each thing that is looked at.
// Invariant: each adds what it finds; none looks at what another has added.
// Used by script_lint.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
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
/// The command lines of reduce_all and lockstep.
void check_programs(const Look& look, Findings& findings);
/// Variables and commands.
void check_commands(const Look& look, Findings& findings);

/// The ranks of `launch`: those that it says, or those of the job where the launcher takes them from there.
[[nodiscard]] std::optional<long> ranks_of(const Launch& launch, const Look& look);
/// VALUE of `flag VALUE` or `flag=VALUE`; empty if it is not there.
[[nodiscard]] std::string_view argument(std::span<const std::string> words, std::string_view flag);
[[nodiscard]] bool has_argument(std::span<const std::string> words, std::string_view flag);
[[nodiscard]] bool starts_ranks(const Launch& launch);

}  // namespace lockstep::site
