#include "site/environment_lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "site/contradictions.hpp"
#include "site/variables.hpp"

namespace lockstep::site {
namespace {

/// Of a name that nothing reads; nothing if it is known, of no family, or may well be one that is not in the table.
/// What it may be meant for is looked for among all names, so only where `searches`.
std::optional<Finding> judge_name(const Variable& variable, bool searches) {
  if (const auto right = searches ? right_name(variable.name) : std::nullopt)
    return Finding{.severity = Severity::error,
                   .what = fmt::format("nothing reads {}", variable.name),
                   .why = "it has no effect, and nothing complains",
                   .fix = *right,
                   .line = variable.line};
  const Family* const family = family_of(variable.name);
  if (family == nullptr || is_known_variable(variable.name)) return std::nullopt;
  if (const auto near = searches ? near_variable(variable.name) : std::nullopt)
    return Finding{.severity = Severity::warning,
                   .what = fmt::format("{} is no variable of {} that is known here", variable.name, family->reader),
                   .why = "a misspelt variable has no effect, and nothing complains",
                   .fix = fmt::format("did you mean {}?", *near),
                   .line = variable.line};
  if (family->is_open) return std::nullopt;
  return Finding{.severity = Severity::note,
                 .what = fmt::format("{} is no variable of {} that is known here", variable.name, family->reader),
                 .why = "",
                 .fix = "",
                 .line = variable.line};
}

std::optional<Finding> judge_value(const Variable& variable) {
  if (variable.value.find('$') != variable.value.npos || variable.value.find('`') != variable.value.npos)
    return std::nullopt;
  const auto expected = expected_instead(variable.name, variable.value);
  if (!expected) return std::nullopt;
  const Family* const family = family_of(variable.name);
  const bool stops_mpi = variable.name.starts_with("OMPI_MCA_");
  return Finding{.severity = Severity::error,
                 .what = fmt::format("{}={}: no such value", variable.name, variable.value),
                 .why = fmt::format("{} {}", family ? family->reader : "the program",
                                    stops_mpi ? "does not start" : "ignores it or takes it for another"),
                 .fix = *expected,
                 .line = variable.line};
}

}  // namespace

std::vector<Finding> lint_environment(std::span<const Variable> variables, Fabric fabric) {
  std::vector<Finding> findings;
  constexpr int most_unknown = 200;  // more than any has, so that no text takes long
  int n_unknown = 0;
  std::set<std::string_view> judged;
  for (const Variable& variable : variables) {
    if (judged.insert(variable.name).second) {
      const bool is_unknown = family_of(variable.name) != nullptr && !is_known_variable(variable.name);
      if (is_unknown) ++n_unknown;
      if (auto finding = judge_name(variable, n_unknown <= most_unknown)) findings.push_back(std::move(*finding));
    }
    if (auto finding = judge_value(variable)) findings.push_back(std::move(*finding));
  }
  for (Finding& finding : find_contradictions(Settings{variables}, fabric)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace lockstep::site
