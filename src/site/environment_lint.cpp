#include "site/environment_lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/ascii.hpp"
#include "site/forms.hpp"
#include "site/text.hpp"
#include "site/variables.hpp"

namespace lockstep::site {
namespace {

/// The variables by name; of several of one name the last.
using Settings = std::map<std::string_view, const Variable*>;

std::string_view value_of(const Settings& settings, std::string_view name) {
  const auto found = settings.find(name);
  return found == settings.end() ? std::string_view{} : trim(found->second->value);
}

bool is_among(std::string_view words, std::string_view value) { return expected_of("word", words, value).empty(); }

bool is_on_slingshot(const Settings& settings, Fabric fabric) {
  const auto of_cxi = settings.lower_bound("FI_CXI_");
  return fabric == Fabric::slingshot || core::equal_ignoring_case(value_of(settings, "FI_PROVIDER"), "cxi") ||
         value_of(settings, "NCCL_NET") == "AWS Libfabric" ||
         (of_cxi != settings.end() && of_cxi->first.starts_with("FI_CXI_"));
}

/// A condition is: NAME (it is set), NAME on, NAME among WORDS (in any case), NAME outside WORDS, NAME having WORD (in
/// its list), NAME within WORDS (all of its list), or slingshot.
bool holds(std::string_view condition, const Settings& settings, Fabric fabric) {
  if (condition == "slingshot") return is_on_slingshot(settings, fabric);
  const std::string_view name = condition.substr(0, condition.find(' '));
  if (!settings.contains(name)) return false;
  const std::string_view rest = trim(condition.substr(name.size())), verb = rest.substr(0, rest.find(' '));
  const std::string_view words = trim(rest.substr(verb.size())), value = value_of(settings, name);
  const auto parts = split(value, ',');
  const auto is_named = [words](std::string_view part) { return is_one_of(trim(part), words); };
  if (verb == "on") return is_among("1 true yes on y", value);
  if (verb == "among") return is_among(words, value);
  if (verb == "outside") return !value.empty() && value.find('$') == value.npos && !is_among(words, value);
  if (verb == "having") return !value.starts_with('^') && std::ranges::any_of(parts, is_named);
  return verb != "within" || std::ranges::all_of(parts, is_named);
}

constexpr std::string_view contradiction_table =
#include "site/contradiction_table.txt"
    ;

void find_contradictions(const Settings& settings, Fabric fabric, std::vector<Finding>& findings) {
  const auto all_hold = [&](std::string_view conditions) {
    return std::ranges::all_of(split(conditions, ';'),
                               [&](std::string_view one) { return holds(one, settings, fabric); });
  };
  static const auto rows = rows_below(contradiction_table, "contradictions");
  for (const auto& row : rows) {
    if (!all_hold(row[1]) || (!row[5].empty() && all_hold(row[5]))) continue;
    std::vector<std::string_view> names;
    for (const std::string_view condition : split(row[1], ';'))
      names.push_back(condition.substr(0, condition.find(' ')));
    const std::string what =
        fmt::format(fmt::runtime(row[2]), value_of(settings, names.front()), value_of(settings, names.back()));
    findings.push_back(
        {severity_named(row[0]), what, std::string{row[3]}, std::string{row[4]}, settings.at(names[0])->line});
  }
  const auto rank = whole_number(value_of(settings, "RANK")), size = whole_number(value_of(settings, "WORLD_SIZE"));
  if (rank && size && *rank >= *size)
    findings.push_back({Severity::error, fmt::format("RANK={} with WORLD_SIZE={}", *rank, *size), "ranks count from 0",
                        fmt::format("0 to {}", *size - 1), settings.at("RANK")->line});
}

/// Finds a name that nothing reads. Returns nothing if the name is known, is of no family, or may be one that the table
/// lacks. Only with `searches` it compares all names, to find the one that was meant.
std::optional<Finding> judge_name(const Variable& variable, bool searches) {
  if (const auto right = searches ? right_name(variable.name) : std::nullopt)
    return Finding{Severity::error, fmt::format("nothing reads {}", variable.name),
                   "it has no effect, and nothing complains", *right, variable.line};
  const Family* const family = family_of(variable.name);
  if (family == nullptr || is_known_variable(variable.name)) return std::nullopt;
  const std::string what = fmt::format("{} is not among the variables of {} known here", variable.name, family->reader);
  if (const auto near = searches ? near_variable(variable.name) : std::nullopt)
    return Finding{Severity::warning, what, "a misspelt variable has no effect, and nothing complains",
                   fmt::format("did you mean {}?", *near), variable.line};
  return family->is_open ? std::nullopt : std::optional{Finding{Severity::note, what, "", "", variable.line}};
}

std::optional<Finding> judge_value(const Variable& variable) {
  if (variable.value.find_first_of("$`") != variable.value.npos) return std::nullopt;
  const std::string expected = expected_instead(variable.name, variable.value);
  if (expected.empty()) return std::nullopt;
  const Family* const family = family_of(variable.name);
  const bool stops_mpi = variable.name.starts_with("OMPI_MCA_");
  return Finding{Severity::error, fmt::format("{}={}: no such value", variable.name, variable.value),
                 fmt::format("{} {}", family ? family->reader : "the program",
                             stops_mpi ? "does not start" : "ignores it or takes it for another value"),
                 expected, variable.line};
}

}  // namespace

std::vector<Finding> lint_environment(std::span<const Variable> variables, Fabric fabric) {
  std::vector<Finding> findings;
  constexpr int most_unknown = 200;  // more than any has, so that no text takes long
  int n_unknown = 0;
  std::set<std::string_view> judged;
  Settings settings;
  for (const Variable& variable : variables) {
    settings[variable.name] = &variable;
    if (judged.insert(variable.name).second) {
      const bool is_unknown = family_of(variable.name) != nullptr && !is_known_variable(variable.name);
      if (is_unknown) ++n_unknown;
      if (auto finding = judge_name(variable, n_unknown <= most_unknown)) findings.push_back(std::move(*finding));
    }
    if (auto finding = judge_value(variable)) findings.push_back(std::move(*finding));
  }
  find_contradictions(settings, fabric, findings);
  return findings;
}

}  // namespace lockstep::site
