#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "runtime/launcher.hpp"

namespace lockstep::runtime {
namespace {

/// Cores this process may use; two hardware threads of a core count once, as launchers count slots.
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

/// Launchers read their options from the environment as well; one does not know the variables of another.
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

std::string find_launcher() {
  const char* const chosen = std::getenv("LOCKSTEP_MPIEXEC");
  return chosen != nullptr && *chosen != '\0' ? chosen : LOCKSTEP_MPIEXEC_EXECUTABLE;
}

// A signal handler can reach nothing but globals.
volatile std::sig_atomic_t launcher_process = 0;
volatile std::sig_atomic_t end_asked_by = 0;
volatile std::sig_atomic_t is_end_forced = 0;
std::atomic<std::int64_t> end_asked_ns{0};

/// Of SIGINT and SIGTERM launchers make an end within a second, whatever the ranks have to finish; SIGUSR1 they pass on. A
/// second signal is meant as they take it; as in ranks (interrupt.cpp), within a second it is still the first.
void ask_for_end(int signal) {
  std::timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  const std::int64_t now_ns = t.tv_sec * 1'000'000'000LL + t.tv_nsec;
  if (end_asked_by == 0) {
    end_asked_by = signal;
    end_asked_ns = now_ns;
    kill(launcher_process, SIGUSR1);
  } else if (now_ns - end_asked_ns > 1'000'000'000) {
    is_end_forced = 1;
    kill(launcher_process, SIGTERM);
  }
}

/// Becomes the launcher; on failure tells why through `failure`. In a process group of its own it gets no Ctrl-C from the
/// terminal, and should this program be killed, the launcher ends the job.
[[noreturn]] void become_launcher(char* const* words, pid_t parent, int failure) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(core::to_int(core::ExitCode::system));
  setpgid(0, 0);
  const core::Descriptor nothing{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  if (nothing) dup2(nothing.get(), STDIN_FILENO);
  execvp(words[0], words);
  const int error = errno;
  static_cast<void>(!write(failure, &error, sizeof error));
  _exit(core::to_int(core::ExitCode::usage));
}

/// Returns the error number of a launcher that cannot be started; else when launcher_process runs.
int start_launcher(char* const* words) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return errno;
  const core::Descriptor from_child{ends[0]};
  core::Descriptor to_parent{ends[1]};
  const pid_t parent = getpid();
  launcher_process = fork();
  if (launcher_process < 0) return errno;
  if (launcher_process == 0) become_launcher(words, parent, to_parent.get());
  to_parent = core::Descriptor{};
  int error = 0;
  const bool has_failed = read(from_child.get(), &error, sizeof error) == sizeof error;
  if (has_failed) waitpid(launcher_process, nullptr, 0);
  return error;
}

[[noreturn]] void follow_launcher() {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = ask_for_end;
    sigaction(signal, &action, nullptr);
  }
  int status = 0;
  while (waitpid(launcher_process, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const bool is_as_asked = code == 128 + SIGTERM || code == 128 + SIGUSR1 || is_end_forced != 0;
  _exit(end_asked_by != 0 && is_as_asked ? 128 + end_asked_by : code);
}

}  // namespace

void relaunch_under_mpi(int n_ranks, int argc, char** argv, int n_threads) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) core::fail_system("cannot read /proc/self/exe to start this program again: " + error.message());
  const std::string launcher = find_launcher();
  std::vector<std::string> words{launcher, LOCKSTEP_MPIEXEC_NUMPROC_FLAG, std::to_string(n_ranks), program.string()};
  for (std::string& argument : drop_nproc(argc, argv)) words.push_back(std::move(argument));
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  prepare_environment(n_ranks, n_threads);
  const int reason = start_launcher(pointers.data());
  if (reason == 0) follow_launcher();
  core::fail_usage({fmt::format("cannot start the MPI launcher '{}': {}", launcher, core::system_reason(reason)),
                    "--nproc", "the launcher of the MPI library this program was built with",
                    "install it (Debian: openmpi-bin for Open MPI, mpich for MPICH), load its module, or name it in "
                    "LOCKSTEP_MPIEXEC"});
}

}  // namespace lockstep::runtime
