#include "runtime/launcher.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "runtime/process.hpp"

namespace lockstep::runtime {
namespace {

std::optional<std::string> read_text(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

/// A number that is not negative.
std::optional<int> parse_count(std::string_view text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<int> read_count(const char* variable) {
  const std::optional<std::string> text = read_text(variable);
  return text ? parse_count(*text) : std::nullopt;
}

/// The launcher's process on this node: the nearest ancestor that does not carry `rank_variable` itself, so that shells
/// and debuggers between launcher and rank do not count.
pid_t find_launcher_process(const char* rank_variable) {
  pid_t ancestor = getppid();
  while (was_started_with(ancestor, rank_variable)) {
    const auto process = read_process(ancestor);
    if (!process || process->parent <= 1) break;
    ancestor = process->parent;
  }
  return ancestor;
}

/// A process id and its start time together are never used twice; `job` tells jobs of one daemon apart.
std::string make_job_key(pid_t process, const std::string& job) {
  const auto status = read_process(process);
  return fmt::format("{}.{}.{}.{}", getuid(), process, status ? status->start_time : 0, job);
}

/// The entry for `node` of Slurm's "4(x2),3": tasks on each node, runs abbreviated.
std::optional<int> find_tasks_of_node(const std::string& list, int node) {
  std::istringstream entries{list};
  for (std::string entry; std::getline(entries, entry, ',');) {
    const std::size_t open = entry.find("(x");
    const bool is_run = open != std::string::npos && entry.ends_with(')');
    const int n_nodes =
        is_run ? parse_count(std::string_view{entry}.substr(open + 2, entry.size() - open - 3)).value_or(1) : 1;
    if (node < n_nodes) return parse_count(std::string_view{entry}.substr(0, open));
    node -= n_nodes;
  }
  return std::nullopt;
}

std::optional<LauncherHint> read_open_mpi() {
  const auto rank = read_count("OMPI_COMM_WORLD_RANK");
  if (!rank) return std::nullopt;
  const pid_t launcher = find_launcher_process("OMPI_COMM_WORLD_RANK");
  return LauncherHint{"Open MPI mpirun",
                      make_job_key(launcher, read_text("PMIX_NAMESPACE").value_or("")),
                      rank,
                      read_count("OMPI_COMM_WORLD_SIZE"),
                      read_count("OMPI_COMM_WORLD_LOCAL_RANK"),
                      read_count("OMPI_COMM_WORLD_LOCAL_SIZE"),
                      launcher};
}

std::optional<LauncherHint> read_pals() {
  const auto rank = read_count("PALS_RANKID");
  const auto job = read_text("PALS_APID");
  if (!rank || !job) return std::nullopt;
  const pid_t launcher = find_launcher_process("PALS_RANKID");
  return LauncherHint{"PALS mpiexec",
                      make_job_key(launcher, *job),
                      rank,
                      read_count("PMI_SIZE"),
                      read_count("PALS_LOCAL_RANKID"),
                      read_count("PMI_LOCAL_SIZE"),
                      launcher};
}

std::optional<LauncherHint> read_hydra() {
  const auto rank = read_count("PMI_RANK");
  const auto local_rank = read_count("MPI_LOCALRANKID");
  if (!rank || !local_rank) return std::nullopt;
  const pid_t launcher = find_launcher_process("PMI_RANK");
  return LauncherHint{"Hydra mpiexec", make_job_key(launcher, ""),    rank,    read_count("PMI_SIZE"),
                      local_rank,      read_count("MPI_LOCALNRANKS"), launcher};
}

/// Slurm sets SLURM_PROCID in batch scripts too; only a step started by srun has a step id and a number of tasks.
std::optional<LauncherHint> read_slurm() {
  const auto rank = read_count("SLURM_PROCID");
  const auto step = read_count("SLURM_STEP_ID");
  const auto n_ranks = read_count("SLURM_STEP_NUM_TASKS");
  if (!rank || !step || !n_ranks || *rank >= *n_ranks) return std::nullopt;
  const auto tasks = read_text("SLURM_STEP_TASKS_PER_NODE");
  const auto node = read_count("SLURM_NODEID");
  const pid_t launcher = find_launcher_process("SLURM_PROCID");
  return LauncherHint{"Slurm srun",
                      make_job_key(launcher, fmt::format("{}.{}", read_text("SLURM_JOB_ID").value_or(""), *step)),
                      rank,
                      n_ranks,
                      read_count("SLURM_LOCALID"),
                      tasks && node ? find_tasks_of_node(*tasks, *node) : std::nullopt,
                      launcher};
}

}  // namespace

LauncherHint read_launcher_hint() {
  // Open MPI and Hydra start their daemons by srun inside a Slurm job: what is nearest to the process comes first.
  for (const auto read : {read_open_mpi, read_pals, read_hydra, read_slurm})
    if (auto hint = read()) return *hint;
  LauncherHint alone;
  alone.job_key = make_job_key(getpid(), "");
  return alone;
}

int n_sharing_a_processor(const LauncherHint& hint) noexcept {
  const int n_processors = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  return std::max(0, hint.n_local_ranks.value_or(0) - 1) / n_processors;
}

bool is_started_by_others() noexcept {
  constexpr std::array<std::string_view, 9> signs{"PMI",   "OMPI_COMM_WORLD", "SLURM_STEP", "FLUX_", "MPI_LOCAL",
                                                  "PALS_", "ALPS_",           "MV2_",       "JSM_"};
  for (char** variable = environ; *variable != nullptr; ++variable)
    for (const std::string_view sign : signs)
      if (std::string_view{*variable}.starts_with(sign)) return true;
  return false;
}

std::optional<core::Error> find_singletons(const LauncherHint& hint, int n_ranks) {
  if (n_ranks > 1 || hint.n_ranks.value_or(1) <= 1) return std::nullopt;
  return core::Error{
      core::ExitCode::usage,
      {.what = fmt::format(
           "{} started {} processes, but each runs as a single rank: its MPI is not the one this program is built with",
           hint.name, *hint.n_ranks),
       .where = "launcher",
       .expected = fmt::format("one job of {} ranks", *hint.n_ranks),
       .fix = "use that MPI's own launcher (or srun with the right --mpi), or --nproc N; if no launcher started this "
              "process, unset its variables, such as OMPI_COMM_WORLD_SIZE"}};
}

void check_n_ranks(int expected, int nproc, int n_ranks) {
  if (expected > 0 && expected != n_ranks)
    core::fail_usage({.what = fmt::format("the job has {} rank{}", n_ranks, n_ranks == 1 ? "" : "s"),
                      .where = "--expect-ranks",
                      .expected = fmt::format("{} ranks", expected),
                      .fix = "use the launcher of the MPI this program is built with, and check its rank count"});
  if (nproc == 0 || nproc == n_ranks) return;
  core::fail_usage({.what = fmt::format("the launcher started {} ranks already", n_ranks),
                    .where = "--nproc",
                    .expected = fmt::format("{} ranks, or no launcher", nproc),
                    .fix = "leave out --nproc, or start without a launcher"});
}

}  // namespace lockstep::runtime
