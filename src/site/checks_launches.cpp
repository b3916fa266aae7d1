#include <fmt/format.h>

#include <algorithm>

#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

bool is_python(const Launch& launch) {
  return !launch.program.empty() &&
         (file_name(launch.program.front()).starts_with("python") || file_name(launch.program.front()) == "torchrun");
}

bool is_of_lockstep(std::span<const std::string> program) {
  return starts(program, "reduce_all") || starts(program, "lockstep");
}

void check_expected_ranks(const Launch& launch, const Look& look) {
  if (!starts_ranks(launch) || !is_of_lockstep(launch.program) || has_argument(launch.program, "--expect-ranks"))
    return;
  for (const std::string_view flag : {"-h", "--help", "--version"})
    if (has_argument(launch.program, flag)) return;
  if (look.script.known.leaves_unknown(launch.program)) return;
  look.error(launch.line, "a launch without --expect-ranks",
             "a launcher that does not know the program's MPI starts ranks that are each alone, and "
             "each succeeds",
             "--expect-ranks \"$SLURM_NTASKS\", with PBS the lines of $PBS_NODEFILE");
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
  const auto sets_it = [](const Variable& variable) { return variable.name == "SRUN_CPUS_PER_TASK"; };
  if (std::ranges::any_of(look.script.variables, sets_it)) return;
  look.warning(
      launch.line, "srun without --cpus-per-task",
      fmt::format("since Slurm 22.05 it does not take that of line {}, and each rank gets one core", header->line),
      "srun --cpus-per-task=\"$SLURM_CPUS_PER_TASK\"");
}

bool loads_module(const Look& look, std::string_view name) {
  return std::ranges::any_of(look.script.commands, [name](const Command& command) {
    const bool is_load = command.words[0] == "module" || command.words[0] == "ml" || command.words[0] == "load";
    return is_load &&
           std::ranges::any_of(command.words, [name](const std::string& word) { return word.starts_with(name); });
  });
}

void check_launcher(const Launch& launch, const Look& look) {
  if (look.site.launcher.empty() || !is_mpi_launcher(launch.launcher)) return;
  if (name(launch.launcher) == look.site.launcher) return;
  if (launch.launcher == Launcher::mpirun && look.site.launcher == "mpiexec" && loads_module(look, "openmpi")) return;
  look.error(launch.line, fmt::format("{} on {}", name(launch.launcher), look.site.title),
             fmt::format("ranks are started by {} there", look.site.launcher), std::string{look.site.launcher});
}

void check_mpi_flag(const Launch& launch, const Look& look) {
  if (look.site.mpi_family != "open-mpi" || launch.launcher != Launcher::srun) return;
  if (is_small_command(launch) || is_python(launch) || may_have_more_flags(launch, look)) return;
  std::optional<std::string> type;  // of --mpi, else of SLURM_MPI_TYPE
  for (const Variable& variable : look.script.variables)
    if (variable.name == "SLURM_MPI_TYPE") type = variable.value;
  const auto flag = std::ranges::find(launch.flags, "--mpi", &Flag::typed);
  if (flag != launch.flags.end()) type = flag->value.value_or("");
  if (type && *type != "pmi2" && *type != "none") return;  // [G-ompi13523]
  look.warning(launch.line, type ? fmt::format("srun --mpi={}", *type) : "srun without --mpi",
               "Open MPI then may start ranks that are each alone, and each succeeds",
               fmt::format("srun --mpi={}", look.site.mpi_flag));
}

void check_torch(const Launch& launch, const Look& look) {
  if (launch.launcher == Launcher::torch_launch)
    look.warning(launch.line, "torch.distributed.launch is deprecated", "", "torchrun, by one srun on all nodes");
  const Flag* port = flag_of(launch, {"master_port"});
  const Flag* const endpoint = flag_of(launch, {"rdzv_endpoint"});
  if (endpoint != nullptr && endpoint->value && endpoint->value->find(':') != std::string::npos) port = endpoint;
  if (port == nullptr || !port->value) return;
  const auto number =
      whole_number(std::string_view{*port->value}.substr(port->value->rfind(':') + 1));  // npos + 1 is 0
  if (!number || *number == 0) return;
  look.warning(launch.line, fmt::format("port {} is fixed", *number), "a second job on that node cannot have it",
               "$((10000 + SLURM_JOB_ID % 50000)), or a program that meets by MPI");
}

void check_hidden_gpus(const Launch& launch, const Look& look) {
  if (!is_of_lockstep(launch.program) || launch.launcher != Launcher::srun) return;
  const Flag* bind = flag_of(launch, {"gpu-bind"});
  if (bind == nullptr) bind = directive(look.script, "gpu-bind");
  const Flag* const by_task = directive(look.script, "gpus-per-task");
  const std::string_view value = bind != nullptr && bind->value ? std::string_view{*bind->value} : std::string_view{};
  const bool hides = value.starts_with("single") || value.starts_with("per_task") || value.starts_with("map_gpu");
  if (!hides && (by_task == nullptr || value == "none")) return;
  look.warning(hides ? bind->line : by_task->line,
               fmt::format("{} hides the other GPUs of its node from a rank", hides ? "--gpu-bind" : "--gpus-per-task"),
               "direct copies between GPUs fail or are slow then (open-mpi/ompi#11949)",
               "--gpus-per-node, without --gpu-bind; ranks choose the GPU next to them");
}

std::optional<long> number_of(const Flag* flag) {
  return flag != nullptr && flag->value ? whole_number(*flag->value) : std::nullopt;
}

void check_expectation(const Launch& launch, const Look& look) {
  if (!is_of_lockstep(launch.program)) return;
  const auto expected = whole_number(argument(launch.program, "--expect-ranks"));
  const auto ranks = ranks_of(launch, look);
  if (!expected || !ranks || *expected == *ranks) return;
  look.error(launch.line, fmt::format("--expect-ranks {} in a launch of {} ranks", *expected, *ranks),
             "the program ends at once", fmt::format("--expect-ranks {}, or better a variable of the job", *ranks));
}

/// More ranks than the job asks for share its cores, if they start at all.
void check_count(long ranks, long asked, long cores, std::string_view of_what, const Launch& launch, const Look& look) {
  const Flag* const flag = flag_of(launch, {"overcommit", "oversubscribe"});
  if (ranks <= asked || flag != nullptr || is_small_command(launch)) return;
  const bool fits = cores == 0 || look.request.is_exclusive || ranks <= cores;
  look.add(fits ? Severity::warning : Severity::error, launch.line,
           fmt::format("{} starts {} ranks {}, and the job asks for {}", name(launch.launcher), ranks, of_what, asked),
           fits ? "they share the cores that the job asks for"
                : fmt::format("it has {} cores for them: the launch is refused, or ranks wait for "
                              "each other",
                              cores),
           fmt::format("as many as the directives say: {}", asked));
}

void check_counts(const Launch& launch, const Look& look) {
  if (!is_mpi_launcher(launch.launcher) || !look.request.ranks) return;
  long per_node = 0, cores = 0, all_cores = 0;
  bool knows_cores = true;
  for (const Chunk& chunk : look.request.chunks) {
    per_node = std::max(per_node, chunk.ranks ? chunk.ranks->value : 0);
    knows_cores = knows_cores && chunk.cores && chunk.cores->value < 1'000'000;
    if (!knows_cores) continue;
    cores = std::max(cores, chunk.cores->value);
    all_cores += std::min(chunk.nodes ? chunk.nodes->value : 1, 1'000'000L) * chunk.cores->value;
  }
  const auto ranks = ranks_of(launch, look);
  const auto of_node = number_of(flag_of(launch, {"ntasks-per-node", "ppn", "npernode"}));
  if (ranks && *ranks > look.request.ranks->value)
    check_count(*ranks, look.request.ranks->value, knows_cores ? all_cores : 0, "in all", launch, look);
  else if (of_node && per_node > 0)
    check_count(*of_node, per_node, knows_cores ? cores : 0, "a node", launch, look);
}

bool asks_for_cuda(const Launch& launch) {
  return is_of_lockstep(launch.program) && argument(launch.program, "--device") == "cuda";
}

bool asks_for_gpus(const Flag& flag) {
  const std::string_view value = flag.value ? std::string_view{*flag.value} : std::string_view{};
  return is_one_of(flag.name, "gpus gpus-per-node gpus-per-task") || value.find("ngpus") != value.npos ||
         (flag.name == "gres" && value.find("gpu") != value.npos);
}

void check_device(const Look& look) {
  const std::vector<Flag>& directives = look.script.directives;
  const auto launch = std::ranges::find_if(look.script.launches, asks_for_cuda);
  if (launch == look.script.launches.end() || directives.empty() || std::ranges::any_of(directives, asks_for_gpus))
    return;
  const bool is_pbs = look.script.system == BatchSystem::pbs;
  look.warning(launch->line, "--device cuda in a job that asks for no GPUs",
               "unless the command line asks for them the program ends at once",
               is_pbs ? "#PBS -l select=1:ngpus=4" : "#SBATCH --gpus-per-node=4");
}

}  // namespace

bool is_mpi_launcher(Launcher launcher) {
  return launcher == Launcher::srun || launcher == Launcher::mpirun || launcher == Launcher::mpiexec;
}

bool is_torch(Launcher launcher) { return launcher == Launcher::torchrun || launcher == Launcher::torch_launch; }

const Flag* flag_of(const Launch& launch, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const Flag* const flag = last_of(launch.flags, name)) return flag;
  return nullptr;
}

bool is_small_command(const Launch& launch) {
  constexpr std::string_view small =
      "which ldd hostname nvidia-smi echo true mkdir cp rm tar ls cat env date lscpu free sbcast printenv";
  return launch.program.empty() ? launch.variable.empty() : is_one_of(file_name(launch.program.front()), small);
}

std::optional<long> ranks_of(const Launch& launch, const Look& look) {
  const Flag* const flag = flag_of(launch, {"ntasks", "n", "np", "c"});
  const bool is_of_srun = launch.launcher == Launcher::srun;
  if (flag != nullptr && (!is_of_srun || flag->name == "ntasks")) return number_of(flag);
  const auto uses_fewer = [](const Command& command) { return command.words[0] == "use_nodes"; };
  if (!look.request.ranks || std::ranges::any_of(look.script.commands, uses_fewer)) return std::nullopt;
  if (is_of_srun && flag_of(launch, {"nodes", "ntasks-per-node", "ntasks-per-gpu", "ntasks-per-core"}) != nullptr)
    return std::nullopt;
  return is_of_srun || launch.launcher == Launcher::launch ? std::optional{look.request.ranks->value} : std::nullopt;
}

std::string_view argument(std::span<const std::string> words, std::string_view flag) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == flag) return i + 1 < words.size() ? std::string_view{words[i + 1]} : std::string_view{};
    if (words[i].starts_with(flag) && words[i].substr(flag.size()).starts_with('='))
      return std::string_view{words[i]}.substr(flag.size() + 1);
  }
  return {};
}

bool has_argument(std::span<const std::string> words, std::string_view flag) {
  return std::ranges::any_of(words, [flag](const std::string& word) {
    return word == flag || (word.starts_with(flag) && word.substr(flag.size()).starts_with('='));
  });
}

bool starts_ranks(const Launch& launch) {
  return is_mpi_launcher(launch.launcher) || launch.launcher == Launcher::launch;
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
