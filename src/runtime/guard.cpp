#include "runtime/guard.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "runtime/session.hpp"

namespace lockstep::runtime {
namespace {

constexpr std::array passed_on{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// A signal handler can reach nothing but globals.
volatile std::sig_atomic_t guarded_process = 0;
volatile std::sig_atomic_t last_passed_on = 0;

void pass_on(int signal) {
  last_passed_on = signal;
  kill(guarded_process, signal);
}

sigset_t signals_passed_on() noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : passed_on) sigaddset(&set, signal);
  return set;
}

int wait_for(pid_t process) noexcept {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// As the child has ended, so that the launcher sees what it would have seen.
[[noreturn]] void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  raise(signal);
  _exit(128 + signal);
}

[[noreturn]] void tell_end_of_rank(const LauncherHint& hint, pid_t process, int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (signal == last_passed_on) end_by(signal);
  const std::string text = fmt::format("error: rank {} on {} (pid {}) has died: signal {} ({})\n",
                                       hint.rank.value_or(0), host_name(), process, signal, strsignal(signal));
  static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
  _exit(core::to_int(core::ExitCode::system));
}

}  // namespace

void guard_rank(const LauncherHint& hint) {
  if (hint.name.empty()) return;
  const pid_t guard = getpid();
  sigset_t before;
  const sigset_t held = signals_passed_on();
  sigprocmask(SIG_BLOCK, &held, &before);
  const pid_t rank = fork();
  if (rank < 0) core::fail_system("cannot start the process of a rank: " + core::system_reason(errno));
  if (rank == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard) _exit(core::to_int(core::ExitCode::system));  // it was killed before it could be noticed
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return;
  }
  prctl(PR_SET_NAME, "lockstep-guard");
  guarded_process = rank;
  struct sigaction action {};
  action.sa_handler = pass_on;
  for (const int signal : passed_on) sigaction(signal, &action, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  tell_end_of_rank(hint, rank, wait_for(rank));
}

}  // namespace lockstep::runtime
