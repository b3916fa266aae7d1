// What the shell of the script fills in: before ranks are there, and where nothing has set it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

// Other values for each rank, and for each node. In a batch script those of Slurm are 0, and the others are not set.
constexpr std::string_view variables_of_rank =
    "SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_TASK_PID OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK "
    "OMPI_COMM_WORLD_NODE_RANK PMI_RANK PMI_LOCAL_RANK PMIX_RANK PALS_RANKID PALS_LOCAL_RANKID MPI_LOCALRANKID "
    "MV2_COMM_WORLD_RANK MV2_COMM_WORLD_LOCAL_RANK";
constexpr std::string_view variables_of_node = "HOSTNAME SLURMD_NODENAME";

/// What the shell fills in of `word` that is another for each rank, or each node with `is_for_shell`; empty if nothing.
std::string too_early(const std::string& word, bool is_for_shell) {
  const Command command{.words = {word}};
  for (const Read& read : reads_of(command))
    if (is_one_of(read.name, variables_of_rank) || (is_for_shell && is_one_of(read.name, variables_of_node)))
      return fmt::format("${}", read.name);
  return is_for_shell && word.find("$(hostname") != word.npos ? "$(hostname)" : "";
}

void check_program_of(const Launch& launch, const Look& look) {
  if (!is_mpi_launcher(launch.launcher) || launch.is_within) return;
  const bool is_for_shell = (runs(launch.program, "bash") || runs(launch.program, "sh")) &&
                            std::ranges::any_of(launch.program, [](const std::string& word) {
                              return word.starts_with('-') && word.ends_with('c');
                            });
  for (const std::string& word : launch.program)
    if (const std::string what = too_early(word, is_for_shell); !what.empty())
      return look.error(launch.line,
                        fmt::format("{} is filled in before {} starts the ranks", what, name(launch.launcher)),
                        "the shell of the script does it, so all ranks get the same",
                        is_for_shell ? fmt::format("single quotes: bash -c '... {} ...'", what)
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
               what.starts_with("$SLURM") ? "in the script it is 0, so all ranks get 0"
                                          : "in the script it is empty, so all ranks get nothing",
               fmt::format("for each rank: {} bash -c 'export {}={}; exec PROGRAM'", name(launch->launcher),
                           variable.name, what));
  }
}

struct OnlyWith {
  std::string_view variable;
  std::string_view options;
  Severity severity = Severity::warning;
};
constexpr OnlyWith only_with[]{
    {"SLURM_CPUS_PER_TASK", "cpus-per-task"},
    {"SLURM_NTASKS_PER_NODE", "ntasks-per-node tasks-per-node"},
    {"SLURM_NTASKS", "ntasks ntasks-per-node tasks-per-node ntasks-per-gpu"},
    {"SLURM_GPUS", "gpus"},
    {"SLURM_GPUS_PER_NODE", "gpus-per-node"},
    {"SLURM_GPUS_PER_TASK", "gpus-per-task"},
    {"SLURM_ARRAY_TASK_ID", "array", Severity::note},
    {"PBS_ARRAY_INDEX", "J", Severity::note},
};

/// Where that is said at all, and not to sbatch or qsub alone.
void check_unasked(const Look& look) {
  if (look.script.directives.empty() || look.script.is_heterogeneous) return;
  std::set<std::string_view> told;
  for (const Variable& variable : look.script.variables) told.insert(variable.name);
  for (const auto& [name, command, has_default, is_asked] : look.reads) {
    const OnlyWith* const row = find_by(only_with, name, &OnlyWith::variable);
    if (row == nullptr || name.starts_with("PBS") != look.is_pbs() || has_default) continue;
    if ((is_asked && command.is_condition) || !told.insert(name).second) continue;
    const auto options = split_words(row->options);
    const auto is_there = [&](std::string_view option) { return directive(look.script, option) != nullptr; };
    if (std::ranges::any_of(options, is_there)) continue;
    const std::string option = fmt::format("{}{}", look.is_pbs() ? "-" : "--", options[0]);
    look.add(row->severity, command.line, fmt::format("${} in a job without {}", name, option),
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
