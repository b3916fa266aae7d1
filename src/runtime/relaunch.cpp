#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/shortage.hpp"
#include "runtime/launcher.hpp"
#include "runtime/launcher_needs.hpp"
#include "runtime/temporary_folder.hpp"
#include "runtime/watch/supervise.hpp"

namespace lockstep::runtime {
namespace {

/// Cores that this process may use; two hardware threads of a core count once, as launchers count slots.
int count_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream file{fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu)};
    std::string siblings = fmt::format("cpu {}", cpu);
    std::getline(file, siblings);
    cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

/// What the user has set stays as it is.
void set_default(const char* variable, const char* value) { setenv(variable, value, 0); }

/// Launchers read their options from the environment as well; each ignores the variables of others.
void prepare_environment(int n_ranks, int n_threads) {
  if (geteuid() == 0) {
    set_default("OMPI_ALLOW_RUN_AS_ROOT", "1");
    set_default("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  if (n_ranks > count_cores()) {
    set_default("OMPI_MCA_rmaps_base_oversubscribe", "1");                   // Open MPI 4
    set_default("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");  // Open MPI 5
  } else {
    const char* const binding = n_threads > 1 ? "none" : "core";
    set_default("OMPI_MCA_hwloc_base_binding_policy", binding);     // Open MPI 4
    set_default("PRTE_MCA_hwloc_default_binding_policy", binding);  // Open MPI 5
    set_default("HYDRA_BINDING", binding);                          // MPICH
  }
  // Ranks of one node need no network: Open MPI 5 looks for a network path to itself and may report that it found none.
  // (It and Open MPI 4 listen on all addresses nevertheless.)
  if (!may_be_elsewhere() && std::getenv("OMPI_MCA_btl_tcp_if_exclude") == nullptr)
    set_default("OMPI_MCA_btl_tcp_if_include", "lo");
}

/// The program's arguments without `--nproc N` or `--nproc=N`.
std::vector<std::string> drop_nproc(int argc, char** argv) {
  std::vector<std::string> kept;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument{argv[i]};
    if (argument == "--nproc")
      ++i;
    else if (!argument.starts_with("--nproc="))
      kept.emplace_back(argument);
  }
  return kept;
}

}  // namespace

std::string own_launcher() {
  const char* const chosen = std::getenv("LOCKSTEP_MPIEXEC");
  return chosen != nullptr && *chosen != '\0' ? chosen : LOCKSTEP_MPIEXEC_EXECUTABLE;
}

void relaunch_under_mpi(int n_ranks, int argc, char** argv, const LaunchOptions& options) {
  require_temporary_folder();
  const LauncherFacts facts = read_launcher_facts();
  for (const LauncherNeed& need : launcher_needs())
    if (auto error = need.judge(facts, n_ranks)) throw core::Error{*error};
  std::error_code unread;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unread);
  if (unread) core::fail_system("cannot read /proc/self/exe to start this program again: " + unread.message());
  const std::string launcher = own_launcher();
  std::vector<std::string> words{launcher, LOCKSTEP_MPIEXEC_NUMPROC_FLAG, std::to_string(n_ranks), program.string()};
  for (std::string& argument : drop_nproc(argc, argv)) words.push_back(std::move(argument));
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  prepare_environment(n_ranks, options.n_threads);
  const int error = supervise_launcher(pointers.data(), options);
  core::refuse_shortage(fmt::format("cannot start the MPI launcher '{}'", launcher), "--nproc", error);
  throw no_launcher(launcher, core::system_reason(error));
}

}  // namespace lockstep::runtime
