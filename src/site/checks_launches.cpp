#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

bool is_mpi_launcher(Launcher launcher) {
  return launcher == Launcher::srun || launcher == Launcher::mpirun || launcher == Launcher::mpiexec;
}

bool is_torch(Launcher launcher) { return launcher == Launcher::torchrun || launcher == Launcher::torch_launch; }

const Flag* flag_of(const Launch& launch, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const Flag* const flag = last_of(launch.flags, name)) return flag;
  return nullptr;
}

std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

/// Of the system: it needs no ranks, no MPI and no cores to speak of.
bool is_small_command(const Launch& launch) {
  constexpr std::array<std::string_view, 18> small{"which", "ldd",  "hostname", "nvidia-smi", "echo",   "true",
                                                   "mkdir", "cp",   "rm",       "tar",        "ls",     "cat",
                                                   "env",   "date", "lscpu",    "free",       "sbcast", "printenv"};
  return launch.program.empty() ? launch.variable.empty()
                                : std::ranges::find(small, file_name(launch.program.front())) != small.end();
}

bool is_python(const Launch& launch) {
  return !launch.program.empty() &&
         (file_name(launch.program.front()).starts_with("python") || file_name(launch.program.front()) == "torchrun");
}

bool is_of_lockstep(std::span<const std::string> program) {
  return starts(program, "reduce_all") || starts(program, "lockstep");
}

void check_expected_ranks(const Launch& launch, const Look& look, Findings& findings) {
  if (!starts_ranks(launch) || !is_of_lockstep(launch.program) || has_argument(launch.program, "--expect-ranks"))
    return;
  for (const std::string_view flag : {"-h", "--help", "--version"})
    if (has_argument(launch.program, flag)) return;
  if (look.script.known.leaves_unknown(launch.program)) return;
  findings.push_back({.severity = Severity::error,
                      .what = "a launch without --expect-ranks",
                      .why = "a launcher that does not know the program's MPI starts ranks that are each alone, and "
                             "each succeeds",
                      .fix = "--expect-ranks \"$SLURM_NTASKS\", with PBS the lines of $PBS_NODEFILE",
                      .line = launch.line});
}

/// srun $flags ./x, where nobody knows what the variable says.
bool may_have_more_flags(const Launch& launch, const Look& look) {
  const std::span<const std::string> program{launch.program};
  return program.size() > 1 && !program[1].starts_with('-') && look.script.known.leaves_unknown(program.first(1));
}

/// Slurm from 22.05 on: srun does not take it from sbatch.
void check_cores_of_ranks(const Launch& launch, const Look& look, Findings& findings) {
  const Flag* const header = directive(look.script, "cpus-per-task");
  if (launch.launcher != Launcher::srun || header == nullptr || is_small_command(launch)) return;
  if (may_have_more_flags(launch, look)) return;
  if (flag_of(launch, {"cpus-per-task", "cpus-per-gpu", "exact"}) != nullptr) return;
  const auto sets_it = [](const Variable& variable) { return variable.name == "SRUN_CPUS_PER_TASK"; };
  if (std::ranges::any_of(look.script.variables, sets_it)) return;
  findings.push_back(
      {.severity = Severity::warning,
       .what = "srun without --cpus-per-task",
       .why =
           fmt::format("since Slurm 22.05 it does not take that of line {}, and each rank gets one core", header->line),
       .fix = "srun --cpus-per-task=\"$SLURM_CPUS_PER_TASK\"",
       .line = launch.line});
}

bool loads_module(const Look& look, std::string_view name) {
  return std::ranges::any_of(look.script.commands, [name](const Command& command) {
    const bool is_load = command.words[0] == "module" || command.words[0] == "ml" || command.words[0] == "load";
    return is_load &&
           std::ranges::any_of(command.words, [name](const std::string& word) { return word.starts_with(name); });
  });
}

void check_launcher(const Launch& launch, const Look& look, Findings& findings) {
  if (look.site.launcher.empty() || !is_mpi_launcher(launch.launcher)) return;
  if (name(launch.launcher) == look.site.launcher) return;
  if (launch.launcher == Launcher::mpirun && look.site.launcher == "mpiexec" && loads_module(look, "openmpi")) return;
  findings.push_back({.severity = Severity::error,
                      .what = fmt::format("{} on {}", name(launch.launcher), look.site.title),
                      .why = fmt::format("ranks are started by {} there", look.site.launcher),
                      .fix = std::string{look.site.launcher},
                      .line = launch.line});
}

/// Of --mpi, else of SLURM_MPI_TYPE; nothing if the script says neither.
std::optional<std::string> mpi_of(const Launch& launch, const Look& look) {
  const auto flag = std::ranges::find(launch.flags, "--mpi", &Flag::typed);
  if (flag != launch.flags.end()) return flag->value.value_or("");
  std::optional<std::string> type;
  for (const Variable& variable : look.script.variables)
    if (variable.name == "SLURM_MPI_TYPE") type = variable.value;
  return type;
}

void check_mpi_flag(const Launch& launch, const Look& look, Findings& findings) {
  if (look.site.mpi_family != "open-mpi" || launch.launcher != Launcher::srun) return;
  if (is_small_command(launch) || is_python(launch) || may_have_more_flags(launch, look)) return;
  const auto type = mpi_of(launch, look);
  if (type && *type != "pmi2" && *type != "none") return;  // [G-ompi13523]
  findings.push_back({.severity = Severity::warning,
                      .what = type ? fmt::format("srun --mpi={}", *type) : "srun without --mpi",
                      .why = "Open MPI then may start ranks that are each alone, and each succeeds",
                      .fix = fmt::format("srun --mpi={}", look.site.mpi_flag),
                      .line = launch.line});
}

void check_torch(const Launch& launch, Findings& findings) {
  if (launch.launcher == Launcher::torch_launch)
    findings.push_back({.severity = Severity::warning,
                        .what = "torch.distributed.launch is deprecated",
                        .why = "",
                        .fix = "torchrun, by one srun on all nodes",
                        .line = launch.line});
  const Flag* port = flag_of(launch, {"master_port"});
  const Flag* const endpoint = flag_of(launch, {"rdzv_endpoint"});
  if (endpoint != nullptr && endpoint->value && endpoint->value->find(':') != std::string::npos) port = endpoint;
  if (port == nullptr || !port->value) return;
  const auto number = whole_number(std::string_view{*port->value}.substr(
      port->value->rfind(':') == std::string::npos ? 0 : port->value->rfind(':') + 1));
  if (!number || *number == 0) return;
  findings.push_back({.severity = Severity::warning,
                      .what = fmt::format("port {} is fixed", *number),
                      .why = "a second job on that node cannot have it",
                      .fix = "$((10000 + SLURM_JOB_ID % 50000)), or a program that meets by MPI",
                      .line = launch.line});
}

long ranks_of_node(const Launch& launch, const Look& look) {
  const Flag* const flag = flag_of(launch, {"ntasks-per-node", "ppn", "npernode"});
  if (flag != nullptr) return whole_number(flag->value.value_or("")).value_or(1);
  const bool is_by_header = launch.launcher == Launcher::srun && flag_of(launch, {"ntasks", "n"}) == nullptr;
  const auto& chunks = look.request.chunks;
  return is_by_header && !chunks.empty() && chunks.front().ranks ? chunks.front().ranks->value : 1;
}

/// [N-credit]: torchrun --nproc-per-node=4 under mpiexec -ppn 4 starts 16 a node.
void check_square(const Launch& launch, const Look& look, Findings& findings) {
  const auto inner = read_launch(launch.program, launch.line);
  if (!is_mpi_launcher(launch.launcher) || !inner || !is_torch(inner->launcher)) return;
  const Flag* const flag = flag_of(*inner, {"nproc_per_node"});
  const long outer_ranks = ranks_of_node(launch, look);
  if (flag == nullptr || outer_ranks < 2 || flag->value == "1") return;
  findings.push_back({.severity = Severity::warning,
                      .what = fmt::format("{} starts torchrun {} times a node, and each starts {} processes",
                                          name(launch.launcher), outer_ranks, flag->value.value_or("several")),
                      .why = "",
                      .fix = "one rank a node with torchrun, or no torchrun",
                      .line = launch.line});
}

void check_hidden_gpus(const Launch& launch, const Look& look, Findings& findings) {
  if (!is_of_lockstep(launch.program) || launch.launcher != Launcher::srun) return;
  const Flag* bind = flag_of(launch, {"gpu-bind"});
  if (bind == nullptr) bind = directive(look.script, "gpu-bind");
  const Flag* const by_task = directive(look.script, "gpus-per-task");
  const std::string_view value = bind != nullptr && bind->value ? std::string_view{*bind->value} : std::string_view{};
  const bool hides = value.starts_with("single") || value.starts_with("per_task") || value.starts_with("map_gpu");
  if (!hides && (by_task == nullptr || value == "none")) return;
  findings.push_back(
      {.severity = Severity::warning,
       .what = fmt::format("{} hides the other GPUs of its node from a rank", hides ? "--gpu-bind" : "--gpus-per-task"),
       .why = "direct copies between GPUs fail or are slow then (open-mpi/ompi#11949)",
       .fix = "--gpus-per-node, without --gpu-bind; ranks choose the GPU next to them",
       .line = hides ? bind->line : by_task->line});
}

std::optional<long> number_of(const Flag* flag) {
  return flag != nullptr && flag->value ? whole_number(*flag->value) : std::nullopt;
}

void check_expectation(const Launch& launch, const Look& look, Findings& findings) {
  if (!is_of_lockstep(launch.program)) return;
  const auto expected = whole_number(argument(launch.program, "--expect-ranks"));
  const auto ranks = ranks_of(launch, look);
  if (!expected || !ranks || *expected == *ranks) return;
  findings.push_back({.severity = Severity::error,
                      .what = fmt::format("--expect-ranks {} in a launch of {} ranks", *expected, *ranks),
                      .why = "the program ends at once",
                      .fix = fmt::format("--expect-ranks {}, or better a variable of the job", *ranks),
                      .line = launch.line});
}

/// More ranks than the job asks for share its cores, if they start at all.
void check_count(long ranks, long asked, long cores, std::string_view of_what, const Launch& launch, const Look& look,
                 Findings& findings) {
  const Flag* const flag = flag_of(launch, {"overcommit", "oversubscribe"});
  if (ranks <= asked || flag != nullptr || is_small_command(launch)) return;
  const bool fits = cores == 0 || look.request.is_exclusive || ranks <= cores;
  findings.push_back({.severity = fits ? Severity::warning : Severity::error,
                      .what = fmt::format("{} starts {} ranks {}, and the job asks for {}", name(launch.launcher),
                                          ranks, of_what, asked),
                      .why = fits ? "they share the cores that the job asks for"
                                  : fmt::format("it has {} cores for them: the launch is refused, or ranks wait for "
                                                "each other",
                                                cores),
                      .fix = fmt::format("as many as the directives say: {}", asked),
                      .line = launch.line});
}

void check_counts(const Launch& launch, const Look& look, Findings& findings) {
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
    check_count(*ranks, look.request.ranks->value, knows_cores ? all_cores : 0, "in all", launch, look, findings);
  else if (of_node && per_node > 0)
    check_count(*of_node, per_node, knows_cores ? cores : 0, "a node", launch, look, findings);
}

bool trains(const JobScript& script) {
  return std::ranges::any_of(script.launches, [](const Launch& launch) {
    return runs(launch.program, "lockstep") && std::ranges::find(launch.program, "train") != launch.program.end();
  });
}

bool requeues_itself(const JobScript& script) {
  return std::ranges::any_of(script.commands, [](const Command& command) {
    const auto& words = command.words;
    return words[0] == "end_job" || words[0] == "qsub" || words[0] == "sbatch" ||
           (words[0] == "scontrol" && words.size() > 1 && words[1] == "requeue");
  });
}

void check_preemption(const Look& look, Findings& findings) {
  if (!trains(look.script) || look.script.directives.empty() || requeues_itself(look.script)) return;
  const bool is_pbs = look.script.system == BatchSystem::pbs;
  const Flag* const again = directive(look.script, is_pbs ? "r" : "requeue");
  const bool is_again = again != nullptr && (!is_pbs || again->value == "y");
  if (is_again || directive(look.script, "signal") != nullptr) return;
  findings.push_back(
      {.severity = Severity::warning,
       .what = is_pbs ? "lockstep train in a job without #PBS -r y"
                      : "lockstep train in a job without --requeue and without --signal",
       .why = "a job that is preempted or reaches its time limit ends there, and nobody goes on with it",
       .fix = is_pbs ? "#PBS -r y" : "#SBATCH --requeue, #SBATCH --signal=USR1@300, and lockstep train --resume auto",
       .line = look.script.directives.front().line});
}

bool asks_for_cuda(const Launch& launch) {
  return is_of_lockstep(launch.program) && argument(launch.program, "--device") == "cuda";
}

bool asks_for_gpus(const Flag& flag) {
  constexpr std::array<std::string_view, 3> counts{"gpus", "gpus-per-node", "gpus-per-task"};
  const std::string_view value = flag.value ? std::string_view{*flag.value} : std::string_view{};
  return std::ranges::find(counts, flag.name) != counts.end() || value.find("ngpus") != value.npos ||
         (flag.name == "gres" && value.find("gpu") != value.npos);
}

void check_device(const Look& look, Findings& findings) {
  const std::vector<Flag>& directives = look.script.directives;
  const auto launch = std::ranges::find_if(look.script.launches, asks_for_cuda);
  if (launch == look.script.launches.end() || directives.empty() || std::ranges::any_of(directives, asks_for_gpus))
    return;
  const bool is_pbs = look.script.system == BatchSystem::pbs;
  findings.push_back({.severity = Severity::warning,
                      .what = "--device cuda in a job that asks for no GPUs",
                      .why = "unless the command line asks for them the program ends at once",
                      .fix = is_pbs ? "#PBS -l select=1:ngpus=4" : "#SBATCH --gpus-per-node=4",
                      .line = launch->line});
}

/// [H-shs]: it makes a failure of the plugin fatal, but needs the network within a node as well.
void check_network_of_node(const Look& look, Findings& findings) {
  const auto& chunks = look.request.chunks;
  const bool is_one_node = chunks.size() == 1 && chunks.front().nodes && chunks.front().nodes->value == 1;
  if (!is_one_node) return;
  for (const Variable& variable : look.script.variables)
    if (variable.name == "NCCL_NET" && variable.value == "AWS Libfabric")
      findings.push_back({.severity = Severity::note,
                          .what = "NCCL_NET=\"AWS Libfabric\" in a job of one node",
                          .why = "it is for jobs of several",
                          .fix = "",
                          .line = variable.line});
}

}  // namespace

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

void check_launches(const Look& look, Findings& findings) {
  for (const Launch& launch : look.script.launches) {
    check_square(launch, look, findings);
    check_hidden_gpus(launch, look, findings);
    if (launch.variable.empty()) {
      check_expected_ranks(launch, look, findings);
      check_expectation(launch, look, findings);
    }
    if (launch.is_by_variable) continue;
    check_launcher(launch, look, findings);
    check_cores_of_ranks(launch, look, findings);
    check_mpi_flag(launch, look, findings);
    check_counts(launch, look, findings);
    check_torch(launch, findings);
  }
  check_preemption(look, findings);
  check_device(look, findings);
  check_network_of_node(look, findings);
}

}  // namespace lockstep::site
