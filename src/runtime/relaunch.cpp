#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
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
#include "core/timer.hpp"
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

/// What asks for an end, but for what is ignored (nohup ignores SIGHUP), and the end of the launcher.
sigset_t awaited_signals() {
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

/// A launcher without one of the three hangs at its end (Open MPI 4), and a pipe may take their places.
void open_standard_descriptors() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = open("/dev/null", O_RDWR);
  if (descriptor >= 0) close(descriptor);
}

/// Becomes the launcher; on failure tells why through `failure`. In a process group of its own it gets no Ctrl-C from the
/// terminal, and should this program be killed, the launcher ends the job.
[[noreturn]] void become_launcher(char* const* words, pid_t parent, int failure, const sigset_t& held) {
  sigprocmask(SIG_UNBLOCK, &held, nullptr);
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

struct Started {
  pid_t process = 0;
  int error = 0;  ///< why it could not be started
};

Started start_launcher(char* const* words, const sigset_t& held) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {.error = errno};
  const core::Descriptor from_child{ends[0]};
  core::Descriptor to_parent{ends[1]};
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) return {.error = errno};
  if (process == 0) become_launcher(words, parent, to_parent.get(), held);
  to_parent = core::Descriptor{};
  int error = 0;
  if (read(from_child.get(), &error, sizeof error) == sizeof error) waitpid(process, nullptr, 0);
  return {process, error};
}

/// The end a user asked for.
struct Asked {
  int signal = 0;  ///< the first one; 0: none yet
  core::Stopwatch since_first{};
  bool is_forced = false;
  core::Stopwatch since_forced{};
};

int exit_code(int status, const Asked& asked) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  // 1 is what launchers end with that got the signal as well.
  const bool is_as_asked = code == 1 || code == 128 + SIGTERM || code == 128 + SIGUSR1 || asked.is_forced;
  return asked.signal != 0 && is_as_asked ? 128 + asked.signal : code;
}

/// Of SIGINT and SIGTERM launchers make an end within a second, whatever the ranks have to finish; SIGUSR1 they pass on to
/// the ranks there are, so it is sent until they have gone. A second signal is meant as launchers take it; within a second it
/// is still the first, as in ranks (interrupt.cpp).
[[noreturn]] void follow_launcher(pid_t launcher, const sigset_t& awaited) {
  std::timespec between_signals{.tv_sec = 0, .tv_nsec = 50'000'000};  // twice as long each time, up to a second
  constexpr core::Seconds same_signal{1}, patience{5};
  Asked asked;
  for (int status = 0;;) {
    if (waitpid(launcher, &status, WNOHANG) == launcher) _exit(exit_code(status, asked));
    const int signal = sigtimedwait(&awaited, nullptr, asked.signal != 0 ? &between_signals : nullptr);
    const bool asks = signal > 0 && signal != SIGCHLD;
    if (asks && asked.signal == 0) {
      asked = {.signal = signal == SIGINT ? SIGINT : SIGTERM};
    } else if (asks && !asked.is_forced && asked.since_first.elapsed().value > same_signal.value) {
      asked.is_forced = true;
      asked.since_forced = {};
      kill(launcher, SIGTERM);
    }
    if (asked.is_forced && asked.since_forced.elapsed().value > patience.value) kill(launcher, SIGKILL);
    if (asked.signal == 0 || asked.is_forced) continue;
    kill(launcher, SIGUSR1);
    if (between_signals.tv_nsec < 500'000'000) between_signals.tv_nsec *= 2;
  }
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
  open_standard_descriptors();
  const sigset_t awaited = awaited_signals();
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  const Started started = start_launcher(pointers.data(), awaited);
  if (started.error == 0) follow_launcher(started.process, awaited);
  sigprocmask(SIG_UNBLOCK, &awaited, nullptr);
  core::fail_usage({fmt::format("cannot start the MPI launcher '{}': {}", launcher, core::system_reason(started.error)),
                    "--nproc", "the launcher of the MPI library this program was built with",
                    "install it (Debian: openmpi-bin for Open MPI, mpich for MPICH), load its module, or name it in "
                    "LOCKSTEP_MPIEXEC"});
}

}  // namespace lockstep::runtime
