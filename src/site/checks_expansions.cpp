#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

/// What a batch script has in the place of what ranks have; empty if they have no variable of this name.
std::string_view value_in_script(std::string_view name) {
  for (const auto& row : option_rows("ranks"))
    if (is_one_of(name, row[1])) return row[0];
  return {};
}

/// What the shell fills in of `word` that is another for each rank, or each node with `is_for_shell`; empty if nothing.
std::string too_early(const std::string& word, bool is_for_shell) {
  const Command command{.words = {word}};
  for (const Read& read : reads_of(command))
    if (!value_in_script(read.name).empty() || (is_for_shell && is_one_of(read.name, "HOSTNAME SLURMD_NODENAME")))
      return fmt::format("${}", read.name);
  return is_for_shell && word.find("$(hostname") != word.npos ? "$(hostname)" : "";
}

void check_program_of(const Launch& launch, const Look& look) {
  if (!is_mpi_launcher(launch.launcher) || launch.is_within) return;
  const bool is_for_shell = (runs(launch.program, "bash") || runs(launch.program, "sh")) &&
                            std::ranges::any_of(launch.program, [](const std::string& word) {
                              return word.starts_with('-') && word.ends_with('c');
                            });
  const auto tell = [&](const std::string& what, const std::string& fix) {
    look.error(launch.line, fmt::format("{} is filled in before {} starts the ranks", what, name(launch.launcher)),
               "the shell of the script does it, so all ranks get the same", fix);
  };
  for (const Flag& flag : launch.flags)
    if (const std::string what = too_early(std::string{flag.text()}, false); !what.empty() && !launch.is_by_variable)
      return tell(what, launch.launcher == Launcher::srun && is_one_of(flag.name, "output error input")
                            ? "%t, which srun fills in for each rank; %n for each node"
                            : fmt::format("a shell for each rank: bash -c 'export NAME={}; exec PROGRAM'", what));
  for (const std::string& word : launch.program)
    if (const std::string what = too_early(word, is_for_shell); !what.empty())
      return tell(what, is_for_shell ? fmt::format("single quotes: bash -c '... {} ...'", what)
                                     : fmt::format("a shell for each rank: bash -c 'exec PROGRAM ... {}'", what));
}

void check_variables(const Look& look) {
  for (const Variable& variable : look.script.variables) {
    const std::string what = too_early(variable.value, false);
    if (what.empty()) continue;
    const auto launch = std::ranges::find_if(look.script.launches, [&](const Launch& one) {
      return is_mpi_launcher(one.launcher) && one.line >= variable.line;
    });
    if (launch == look.script.launches.end()) continue;
    look.error(variable.line,
               fmt::format("{}={} before {} starts the ranks", variable.name, what, name(launch->launcher)),
               fmt::format("in the script it is {}, and all ranks get that", value_in_script(what.substr(1))),
               fmt::format("for each rank: {} bash -c 'export {}={}; exec PROGRAM'", name(launch->launcher),
                           variable.name, what));
  }
}

/// Where that is said at all, and not to sbatch or qsub alone.
void check_unasked(const Look& look) {
  if (look.script.directives.empty() || look.script.is_heterogeneous) return;
  std::set<std::string_view> told;
  for (const Variable& variable : look.script.variables) told.insert(variable.name);
  for (const auto& [name, command, has_default, is_asked] : look.reads) {
    const auto* const row = option_row("variables", name);
    if (row == nullptr || name.starts_with("PBS") != look.is_pbs() || has_default) continue;
    if ((is_asked && command.is_condition) || !told.insert(name).second) continue;
    const auto options = split_words((*row)[2]);
    const auto is_there = [&](std::string_view option) { return directive(look.script, option) != nullptr; };
    if (std::ranges::any_of(options, is_there)) continue;
    const std::string option = fmt::format("{}{}", look.is_pbs() ? "-" : "--", options[0]);
    look.add(severity_named((*row)[1]), command.line, fmt::format("${} in a job without {}", name, option),
             "it is set only where a directive asks for that, and is empty otherwise",
             fmt::format("{}{}{}N, or ${{{}:-1}}", look.is_pbs() ? "#PBS " : "#SBATCH ", option,
                         look.is_pbs() ? " " : "=", name));
  }
}

}  // namespace

void check_expansions(const Look& look) {
  for (const Launch& launch : look.script.launches) check_program_of(launch, look);
  check_variables(look);
  check_unasked(look);
}

}  // namespace lockstep::site
