#include "runtime/watch/guard.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "core/error.hpp"
#include "core/print.hpp"
#include "core/timer.hpp"
#include "runtime/asked.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/session.hpp"
#include "runtime/watch/lingering.hpp"
#include "runtime/watch/mpi_segment.hpp"

namespace lockstep::runtime {
namespace {

constexpr std::array passed_on{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// A signal handler can reach only globals.
volatile std::sig_atomic_t guarded_process = 0;
std::atomic<unsigned> passed_on_bits{0};
static_assert(std::atomic<unsigned>::is_always_lock_free);

// In the rank; 0: none.
pid_t my_guard = 0;
int my_local_rank = 0;

/// Memory that rank and guard share. A function has the same address in both, because one is a copy of the other.
struct Will {
  MpiSegment segment;  ///< once it has started
  std::atomic<bool> has_started;
  std::atomic<LastDeed> deed;
  std::array<char, 4001> note;
};
static_assert(std::atomic<LastDeed>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// A process has at most one guard, which is created before anything could own this.
Will* will = nullptr;

/// Rank 0 may be writing just now, which it can do without this rank.
constexpr auto time_for_others = std::chrono::milliseconds{100};
constexpr unsigned longest_deed_s = 2;  // the file system may hang as well

unsigned bit_of(int signal) noexcept { return signal < 32 ? 1U << signal : 0; }

void pass_on(int signal) {
  passed_on_bits |= bit_of(signal);
  if (guarded_process != 0) kill(guarded_process, signal);
}

sigset_t signals_passed_on() noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : passed_on) sigaddset(&set, signal);
  return set;
}

/// Lets the watchdogs of other ranks report what they see of a stopped rank.
constexpr double time_for_watchdogs_s = 3;

/// How long it has been stopped, as seen by this process, which may have been stopped itself.
class Standstill {
 public:
  void note(bool is_stopped) noexcept {
    const double gap = std::min(since_look_.elapsed().value, 0.2);
    since_look_ = {};
    seconds_ = is_stopped ? seconds_ + gap : 0;
  }
  [[nodiscard]] double seconds() const noexcept { return seconds_; }

 private:
  core::Stopwatch since_look_{};
  double seconds_ = 0;
};

/// Its status once it has ended; nothing if it is stopped for longer than `limit_s`; 0: no limit.
std::optional<int> wait_for(pid_t process, double limit_s) noexcept {
  bool is_stopped = false;
  Standstill standstill;
  for (int status = 0;;) {
    const pid_t changed = waitpid(process, &status, WUNTRACED | WCONTINUED | (is_stopped ? WNOHANG : 0));
    if (changed < 0 && errno != EINTR) return core::to_int(core::ExitCode::system) << 8;  // as if it had ended so
    if (changed == process) {
      if (WIFEXITED(status) || WIFSIGNALED(status)) return status;
      is_stopped = WIFSTOPPED(status);
    }
    standstill.note(is_stopped);
    if (limit_s > 0 && standstill.seconds() > limit_s) return std::nullopt;
    if (is_stopped) std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
}

/// Ends as the child did, so that the launcher sees what it would have seen without a guard.
[[noreturn]] void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  raise(signal);
  _exit(128 + signal);
}

/// Zeroed; null if there is no such memory.
Will* make_will() noexcept {
  void* const memory = mmap(nullptr, sizeof(Will), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Will*>(memory);
}

void execute_will(const std::string& reason) {
  const LastDeed deed = will != nullptr ? will->deed.load(std::memory_order_acquire) : nullptr;
  if (deed == nullptr) return;
  std::signal(SIGALRM, [](int) { _exit(core::to_int(core::ExitCode::system)); });
  alarm(longest_deed_s);
  std::this_thread::sleep_for(time_for_others);
  deed(will->note.data(), reason);
}

std::string describe_rank(const LauncherHint& hint, pid_t process) {
  const std::string rank = hint.rank ? fmt::format("rank {} on ", *hint.rank) : std::string{};
  return fmt::format("{}{} (pid {})", rank, host_name(), process);
}

void tell(const std::string& reason) {
  core::write_in_time(STDERR_FILENO, fmt::format("error: {}\n", reason));
  execute_will(reason);
}

/// As its rank has.
[[noreturn]] void leave(int code) {
  tell_exit(code);
  _exit(code);
}

/// Ends a rank that left before it had started: a library that cannot start ends its process with a code of its own,
/// which would mean something else to a user.
[[noreturn]] void end_unstarted(const LauncherHint& hint, pid_t process, int code) {
  const auto is_ours = [code](core::ExitCode one) { return core::to_int(one) == code; };
  if (is_ours(core::ExitCode::usage) || is_ours(core::ExitCode::system) || is_ours(core::ExitCode::stalled))
    leave(code);
  if (tell_exit(core::to_int(core::ExitCode::system)))  // all ranks would say the same
    tell(
        fmt::format("{}: MPI failed to start and ended the process with exit code {}\n"
                    "  fix: read MPI's messages above; check MPI's settings and the limits of a process (ulimit -a)",
                    describe_rank(hint, process), code));
  _exit(core::to_int(core::ExitCode::system));
}

/// Whether the code is not one of this program: PMIx ends a process in this way if its launcher is gone.
bool is_foreign(int code) noexcept {
  const bool is_signal = code > 128 && code <= 128 + SIGRTMAX;
  return code > core::to_int(core::ExitCode::stalled) && code != core::to_int(core::ExitCode::requeue) && !is_signal;
}

[[noreturn]] void tell_end_of_rank(const LauncherHint& hint, pid_t process, int status) {
  if (WIFEXITED(status)) {
    if (will != nullptr && !will->has_started) end_unstarted(hint, process, WEXITSTATUS(status));
    if (is_foreign(WEXITSTATUS(status))) {
      // The launcher would have to pass on what could be printed here.
      execute_will(fmt::format("{}: MPI ended the process with exit code {}; likely cause: its launcher was killed",
                               describe_rank(hint, process), WEXITSTATUS(status)));
      _exit(core::to_int(core::ExitCode::system));
    }
    leave(WEXITSTATUS(status));
  }
  const int signal = WTERMSIG(status);
  if (signal == SIGPIPE) end_by(signal);  // nobody reads on, as of `reduce_all | head`: no fault of a rank
  if ((passed_on_bits & bit_of(signal)) != 0) {
    // Launchers turn other signals into SIGTERM, and --nproc into SIGUSR1.
    const int told = signal == SIGTERM || signal == SIGUSR1 ? told_signal() : 0;
    const int asked = told != 0 ? told : signal;
    execute_will(fmt::format("ended at once by signal {} ({})", asked, strsignal(asked)));
    end_by(signal);
  }
  const std::string reason =
      fmt::format("{} has died: signal {} ({})", describe_rank(hint, process), signal, strsignal(signal));
  // UCX aborts ranks that talk to a dead one: their guards stay silent if the guard of the dead one has spoken.
  const bool is_first = tell_exit(core::to_int(core::ExitCode::system));
  is_first || signal != SIGABRT ? tell(reason) : execute_will(reason);
  _exit(core::to_int(core::ExitCode::system));
}

/// --nproc takes care of its launcher itself. A launcher that also has ranks on other nodes has to stay until they have
/// ended, which is soon after one rank has failed.
void see_off(const LauncherProcess& launcher, const LauncherHint& hint, const std::optional<int>& status) {
  if (has_place_to_tell()) return;
  const auto ended_with = [&status](core::ExitCode code) { return WEXITSTATUS(*status) == core::to_int(code); };
  const bool has_failed =
      !status || WIFSIGNALED(*status) || ended_with(core::ExitCode::system) || ended_with(core::ExitCode::stalled);
  if (has_failed || (launcher.has_all_ranks && hint.local_rank.value_or(0) == 0)) leave_watch_over(launcher);
}

[[noreturn]] void end_stopped_rank(const LauncherHint& hint, pid_t process, core::Seconds timeout) {
  tell(fmt::format("stalled: no progress for {:g} s\n  {}: stopped by a signal (state T)", timeout.value,
                   describe_rank(hint, process)));
  kill(process, SIGKILL);
  leave(core::to_int(core::ExitCode::stalled));
}

}  // namespace

void guard_rank(const LauncherHint& hint, core::Seconds timeout, bool is_wanted_alone) {
  find_place_to_tell();
  if (hint.name.empty() && !is_wanted_alone) return;
  const pid_t guard = getpid();
  sigset_t before;
  const sigset_t held = signals_passed_on();
  sigprocmask(SIG_BLOCK, &held, &before);
  std::optional<LauncherProcess> launcher = find_launcher(hint);
  will = make_will();
  std::signal(SIGCHLD, SIG_DFL);  // whoever ignores it passes that on, and cannot wait for a process
  const pid_t rank = fork();
  if (rank < 0) core::fail_system("cannot start the process of a rank: " + core::system_reason(errno));
  if (rank == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard) _exit(core::to_int(core::ExitCode::system));  // it was killed before it could be noticed
    my_guard = guard;
    my_local_rank = hint.local_rank.value_or(0);
    launcher.reset();
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return;
  }
  prctl(PR_SET_NAME, "lockstep-guard");
  std::signal(SIGPIPE, SIG_IGN);  // the last deed is done even if nobody reads what is told
  guarded_process = rank;
  struct sigaction action {};
  action.sa_handler = pass_on;
  const sigset_t asked_for = asking_signals();
  for (const int signal : passed_on) {
    struct sigaction inherited {};
    sigaction(signal, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN || sigismember(&asked_for, signal) == 1) sigaction(signal, &action, nullptr);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  const std::optional<int> status = wait_for(rank, timeout.value > 0 ? timeout.value + time_for_watchdogs_s : 0);
  guarded_process = 0;
  if (launcher) see_off(*launcher, hint, status);
  if (status && will != nullptr && will->has_started) remove_if_left(will->segment);
  if (status)
    tell_end_of_rank(hint, rank, *status);
  else
    end_stopped_rank(hint, rank, timeout);
}

void tell_of_start() noexcept {
  if (will != nullptr) {
    will->segment = find_mpi_segment(my_local_rank);
    will->has_started = true;
  }
  tell_start();
}

pid_t guard_of_rank() noexcept { return my_guard; }

void outlive_guard(bool outlives) noexcept {
  if (my_guard != 0) prctl(PR_SET_PDEATHSIG, outlives ? SIGCONT : SIGKILL);
}

void wake_guard() noexcept {
  if (my_guard != 0 && getppid() == my_guard) kill(my_guard, SIGCONT);
}

void set_last_deed(LastDeed deed, std::string_view note) noexcept {
  if (will == nullptr || note.size() >= will->note.size()) return;
  *std::copy(note.begin(), note.end(), will->note.begin()) = 0;
  will->deed.store(deed, std::memory_order_release);
}

}  // namespace lockstep::runtime
