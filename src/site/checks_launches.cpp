#include <fmt/format.h>

#include <algorithm>

#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

bool is_python(const Launch& launch) {
  if (launch.program.empty()) return false;
  const std::string_view name = file_name(launch.program.front());
  return name.starts_with("python") || is_one_of(name, "torchrun accelerate deepspeed");
}

bool is_of_lockstep(std::span<const std::string> program) {
  return starts(program, "reduce_all") || starts(program, "lockstep");
}

void check_expected_ranks(const Launch& launch, const Look& look) {
  if (!starts_ranks(launch) || !is_of_lockstep(launch.program)) return;
  for (const std::string_view flag : {"--expect-ranks", "-h", "--help", "--version"})
    if (argument(launch.program, flag)) return;
  if (look.script.known.leaves_unknown(launch.program)) return;
  look.error(launch.line, "a launch without --expect-ranks",
             "a launcher that does not know the program's MPI starts each rank alone, and each one succeeds",
             "--expect-ranks \"$SLURM_NTASKS\"; with PBS, the number of lines in $PBS_NODEFILE");
}

/// srun $flags ./x, where nobody knows what the variable says.
bool may_have_more_flags(const Launch& launch, const Look& look) {
  const std::span<const std::string> program{launch.program};
  return program.size() > 1 && !program[1].starts_with('-') && look.script.known.leaves_unknown(program.first(1));
}

/// Slurm from 22.05 on: srun does not take it from sbatch.
void check_cores_of_ranks(const Launch& launch, const Look& look) {
  const Flag* const header = directive(look.script, "cpus-per-task");
  if (launch.launcher != Launcher::srun || header == nullptr || is_small_command(launch)) return;
  if (may_have_more_flags(launch, look)) return;
  if (flag_of(launch, {"cpus-per-task", "cpus-per-gpu", "exact"}) != nullptr) return;
  if (find_by(look.script.variables, "SRUN_CPUS_PER_TASK", &Variable::name) != nullptr) return;
  look.warning(launch.line, "srun without --cpus-per-task",
               fmt::format("since Slurm 22.05 srun ignores the one of line {}: each rank gets one core", header->line),
               "srun --cpus-per-task=\"$SLURM_CPUS_PER_TASK\"");
}

bool loads_module(const Look& look, std::string_view name) {
  const auto names_it = [name](const std::string& word) { return word.starts_with(name); };
  return std::ranges::any_of(look.script.commands, [&](const Command& command) {
    return is_one_of(command.words[0], "module ml load") && std::ranges::any_of(command.words, names_it);
  });
}

void check_launcher(const Launch& launch, const Look& look) {
  if (look.site.launcher.empty() || !is_mpi_launcher(launch.launcher)) return;
  if (name(launch.launcher) == look.site.launcher) return;
  if (launch.launcher == Launcher::mpirun && look.site.launcher == "mpiexec" && loads_module(look, "openmpi")) return;
  look.error(launch.line, fmt::format("{} on {}", name(launch.launcher), look.site.title),
             fmt::format("ranks are started by {} there", look.site.launcher), look.site.launcher);
}

void check_mpi_flag(const Launch& launch, const Look& look) {
  if (look.site.mpi_family != "open-mpi" || launch.launcher != Launcher::srun) return;
  if (is_small_command(launch) || is_python(launch) || may_have_more_flags(launch, look)) return;
  const Flag* const flag = find_by(launch.flags, "--mpi", &Flag::typed);
  const Variable* const variable = find_last_by(look.script.variables, "SLURM_MPI_TYPE", &Variable::name);
  const bool is_said = flag != nullptr || variable != nullptr;
  const std::string_view type = flag != nullptr ? flag->text() : is_said ? std::string_view{variable->value} : "";
  if (is_said && type != "pmi2" && type != "none") return;  // [G-ompi13523]
  look.warning(launch.line, is_said ? fmt::format("srun --mpi={}", type) : "srun without --mpi",
               "Open MPI may then start each rank alone, and each one succeeds",
               fmt::format("srun --mpi={}", look.site.mpi_flag));
}

void check_torch(const Launch& launch, const Look& look) {
  if (launch.launcher == Launcher::torch_launch)
    look.warning(launch.line, "torch.distributed.launch is deprecated", "", "torchrun, by one srun on all nodes");
  for (const std::string_view name : {"master_port", "main_process_port", "rdzv_endpoint"}) {
    const std::string_view value = flag_of(launch, {name}) != nullptr ? flag_of(launch, {name})->text() : "";
    const auto port = whole_number(value.substr(value.rfind(':') + 1));  // npos + 1 is 0
    if (port && *port != 0) warn_of_port(launch.line, *port, look);
  }
}

void check_hidden_gpus(const Launch& launch, const Look& look) {
  if (!is_of_lockstep(launch.program) || launch.launcher != Launcher::srun) return;
  const Flag* bind = flag_of(launch, {"gpu-bind"});
  if (bind == nullptr) bind = directive(look.script, "gpu-bind");
  const Flag* const by_task = directive(look.script, "gpus-per-task");
  const std::string_view value = bind != nullptr ? bind->text() : "";
  const bool hides = value.starts_with("single") || value.starts_with("per_task") || value.starts_with("map_gpu");
  if (!hides && (by_task == nullptr || value == "none")) return;
  look.warning(hides ? bind->line : by_task->line,
               fmt::format("{} hides the other GPUs of its node from a rank", hides ? "--gpu-bind" : "--gpus-per-task"),
               "direct copies between GPUs then fail or are slow (open-mpi/ompi#11949)",
               "--gpus-per-node without --gpu-bind: each rank chooses the GPU next to it");
}

void check_expectation(const Launch& launch, const Look& look) {
  if (!is_of_lockstep(launch.program)) return;
  const auto expected = whole_number(argument(launch.program, "--expect-ranks").value_or(""));
  const auto ranks = ranks_of(launch, look);
  if (!expected || !ranks || *expected == *ranks) return;
  look.error(launch.line, fmt::format("--expect-ranks {} in a launch of {}", *expected, counted(*ranks, "rank")),
             "the program stops at once", fmt::format("--expect-ranks {}, or better a variable of the job", *ranks));
}

/// More ranks than the job asks for share its cores, if they start at all.
void check_count(long ranks, long asked, long cores, std::string_view of_what, const Launch& launch, const Look& look) {
  const Flag* const flag = flag_of(launch, {"overcommit", "oversubscribe"});
  if (ranks <= asked || flag != nullptr || is_small_command(launch)) return;
  const bool fits = cores == 0 || look.request.is_exclusive || ranks <= cores;
  look.add(fits ? Severity::warning : Severity::error, launch.line,
           fmt::format("{} starts {} ranks {}, and the job asks for {}", name(launch.launcher), ranks, of_what, asked),
           fits ? "they share the cores that the job asks for"
                : fmt::format("the job has {} for them: the launch fails, or ranks wait for each other",
                              counted(cores, "core")),
           fmt::format("as many as the directives ask for: {}", asked));
}

void check_counts(const Launch& launch, const Look& look) {
  if (!is_mpi_launcher(launch.launcher) || (!look.request.ranks && look.request.is_exclusive)) return;
  long per_node = 0, cores = 0, all_cores = 0;
  bool knows_cores = true;
  for (const Chunk& chunk : look.request.chunks) {
    per_node = std::max(per_node, value_or(chunk.ranks, 0L));
    knows_cores = knows_cores && chunk.cores && chunk.cores->value < 1'000'000;
    if (!knows_cores) continue;
    cores = std::max(cores, chunk.cores->value);
    all_cores += std::min(value_or(chunk.nodes, 1L), 1'000'000L) * chunk.cores->value;
  }
  const auto ranks = ranks_of(launch, look);
  const auto of_node = count_of(launch, {"ntasks-per-node", "ppn", "npernode"});
  const long asked = value_or(look.request.ranks, look.is_pbs() && knows_cores ? all_cores : 0);
  if (ranks && asked > 0 && *ranks > asked)
    check_count(*ranks, asked, knows_cores ? all_cores : 0, "in all", launch, look);
  else if (of_node && per_node > 0)
    check_count(*of_node, per_node, knows_cores ? cores : 0, "a node", launch, look);
}

bool asks_for_cuda(const Launch& launch) {
  return is_of_lockstep(launch.program) && argument(launch.program, "--device") == "cuda";
}

bool asks_for_gpus(const Flag& flag) {
  return is_one_of(flag.name, "gpus gpus-per-node gpus-per-task") || flag.text().find("ngpus") != std::string::npos ||
         (flag.name == "gres" && flag.text().find("gpu") != std::string::npos);
}

void check_device(const Look& look) {
  const std::vector<Flag>& directives = look.script.directives;
  const auto launch = std::ranges::find_if(look.script.launches, asks_for_cuda);
  if (launch == look.script.launches.end() || directives.empty() || std::ranges::any_of(directives, asks_for_gpus))
    return;
  look.warning(launch->line, "--device cuda in a job that asks for no GPUs",
               "the program stops at once, unless the command line asks for GPUs",
               look.is_pbs() ? "#PBS -l select=1:ngpus=4" : "#SBATCH --gpus-per-node=4");
}

}  // namespace

void warn_of_port(int line, long port, const Look& look) {
  look.warning(line, fmt::format("port {} is fixed", port), "a second job on that node cannot use it",
               "$((10000 + SLURM_JOB_ID % 50000)), or a program whose ranks meet by MPI");
}

std::optional<long> ranks_of(const Launch& launch, const Look& look) {
  const Flag* const flag = flag_of(launch, {"ntasks", "n", "np", "c"});
  const bool is_of_srun = launch.launcher == Launcher::srun;
  if (flag != nullptr && (!is_of_srun || flag->name == "ntasks")) return whole_number(flag->text());
  const auto uses_fewer = [](const Command& command) { return command.words[0] == "use_nodes"; };
  if (!look.request.ranks || std::ranges::any_of(look.script.commands, uses_fewer)) return std::nullopt;
  if (is_of_srun && flag_of(launch, {"nodes", "ntasks-per-node", "ntasks-per-gpu", "ntasks-per-core"}) != nullptr)
    return std::nullopt;
  return is_of_srun || launch.launcher == Launcher::launch ? std::optional{look.request.ranks->value} : std::nullopt;
}

void check_launches(const Look& look) {
  for (const Launch& launch : look.script.launches) {
    check_hidden_gpus(launch, look);
    if (launch.variable.empty()) {
      check_expected_ranks(launch, look);
      check_expectation(launch, look);
    }
    if (launch.is_by_variable) continue;
    check_launcher(launch, look);
    check_cores_of_ranks(launch, look);
    check_mpi_flag(launch, look);
    check_counts(launch, look);
    check_torch(launch, look);
  }
  check_device(look);
}

}  // namespace lockstep::site
