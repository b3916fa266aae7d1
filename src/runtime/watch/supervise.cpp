#include "runtime/watch/supervise.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/print.hpp"
#include "runtime/asked.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/launcher_output.hpp"
#include "runtime/process.hpp"

namespace lockstep::runtime {
namespace {

/// Signals that ask for an end, and the end of the launcher. The launcher inherits none of them as ignored.
sigset_t awaited_signals() {
  sigset_t set = asking_signals();
  sigaddset(&set, SIGCHLD);
  for (int signal = 1; signal < SIGRTMIN; ++signal)
    if (sigismember(&set, signal) == 1) std::signal(signal, SIG_DFL);
  return set;
}

/// Becomes the launcher; on failure reports the reason through `failure`. In its own process group it gets no Ctrl-C
/// from the terminal; if this program is killed, the launcher ends the job.
[[noreturn]] void become_launcher(char* const* command, pid_t parent, int failure, const LauncherOutput& output,
                                  const sigset_t& held) {
  sigprocmask(SIG_UNBLOCK, &held, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(core::to_int(core::ExitCode::system));
  setpgid(0, 0);
  const core::Descriptor nothing{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  if (nothing) dup2(nothing.get(), STDIN_FILENO);
  output.take_places();
  execvp(command[0], command);
  const int error = errno;
  static_cast<void>(!write(failure, &error, sizeof error));
  _exit(core::to_int(core::ExitCode::usage));
}

struct Started {
  pid_t process = 0;
  int error = 0;  ///< why it could not be started
};

Started start_launcher(char* const* command, const LauncherOutput& output, const sigset_t& held) {
  std::optional<Pipe> failure = make_pipe();
  if (!failure) return {.error = errno};
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) return {.error = errno};
  if (process == 0) become_launcher(command, parent, failure->to.get(), output, held);
  failure->to = core::Descriptor{};
  int error = 0;
  if (read(failure->from.get(), &error, sizeof error) == sizeof error) waitpid(process, nullptr, 0);
  return {process, error};
}

// Children that this process already had: those of a shell that became it, which filter its output.
std::vector<pid_t> others;

std::vector<Descendant> find_descendants() { return runtime::find_descendants(others); }

void signal_all(const std::vector<Descendant>& processes, int signal, auto which) {
  for (const Descendant& one : processes)
    if (which(one)) kill(one.process, signal);
}

bool is_any_process(const Descendant&) { return true; }
bool stands_still(const Descendant& one) { return one.is_stopped; }
bool runs_this_program(const Descendant& one) { return one.is_ours; }

/// Processes of the job. Those that remain after the launcher are our orphans: they get as long as guards need to
/// report how their ranks ended.
void end_leftovers(const core::Clock& clock) {
  constexpr core::Seconds patience{2.5};
  const core::Timer watch{clock};
  for (std::vector<Descendant> left = find_descendants(); !left.empty(); left = find_descendants()) {
    signal_all(left, SIGCONT, stands_still);
    if (watch.elapsed().value > patience.value)
      signal_all(left, watch.elapsed().value > 1.5 * patience.value ? SIGKILL : SIGTERM, is_any_process);
    if (watch.elapsed().value > 2 * patience.value) return;  // one that not even SIGKILL ends is not waited for
    clock.sleep({0.02});
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}

/// Besides LOCKSTEP_MPIEXEC, whose launcher may do anything.
constexpr std::array variables_of_nodes{"SLURM_JOB_ID",
                                        "PBS_NODEFILE",
                                        "LSB_JOBID",
                                        "PE_HOSTFILE",
                                        "OMPI_MCA_orte_default_hostfile",
                                        "PRTE_MCA_prte_default_hostfile",
                                        "HYDRA_HOST_FILE"};

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

bool has_other_nodes() { return std::ranges::any_of(variables_of_nodes, is_set); }

/// Whether ranks end a job with this code. 1 does not count, because any program that is no launcher may end with it.
bool is_exit_code_of_ours(int code) {
  constexpr std::array codes{core::ExitCode::usage, core::ExitCode::system, core::ExitCode::stalled,
                             core::ExitCode::requeue};
  return code > 128 || std::ranges::any_of(codes, [&](core::ExitCode one) { return core::to_int(one) == code; });
}

/// An end requested by a user: its steps, and when each was taken.
class End {
 public:
  explicit End(const LaunchOptions& options)
      : is_resumable_{options.is_resumable},
        since_asked_{*options.clock},
        since_continued_{*options.clock},
        since_step_{*options.clock} {}

  /// Notes a signal. A second one is handled as launchers do; within a second it counts as the first, as in ranks
  /// (interrupt.cpp).
  void ask(int signal) {
    if (asked_ == 0) {
      asked_ = signal;
      tell_signal(asked_);
      since_asked_.restart();
    } else if (signal != SIGUSR1 && signal != SIGUSR2 && since_asked_.elapsed().value > 1) {
      is_forced_ = true;
    }
  }

  /// To be called often: does what is due.
  void proceed(pid_t launcher) {
    if (asked_ == 0) return;
    if (step_ == Step::in_order) {
      if (is_forced_ || has_waited_enough())
        enter(Step::by_launcher, launcher);
      else
        kill(launcher, SIGUSR1);
    } else if (step_ == Step::by_launcher && since_step_.elapsed().value > 5) {
      enter(Step::by_us, launcher);
    } else if (step_ == Step::by_us && since_step_.elapsed().value > 2.5) {
      signal_all(find_descendants(), SIGKILL, is_any_process);
    }
  }

  [[nodiscard]] bool is_asked() const noexcept { return asked_ != 0; }
  [[nodiscard]] bool repeats() const noexcept { return step_ == Step::in_order; }

  /// `is_silent`: nobody has said anything.
  [[nodiscard]] int exit_code(int status, bool is_silent) const {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const bool is_decided = told_exit() == core::to_int(core::ExitCode::requeue) ||
                            told_exit() == core::to_int(core::ExitCode::failed);  // whatever was asked
    if (is_decided || (asked_ == 0 && told_exit() != 0)) return told_exit();      // a guard knows better
    if (asked_ == 0 && code != 0 && has_lost_reader()) return 128 + SIGPIPE;
    if (asked_ == 0 && WIFSIGNALED(status)) {
      write_all(STDERR_FILENO, fmt::format("error: the MPI launcher was ended by signal {} ({})\n", WTERMSIG(status),
                                           strsignal(WTERMSIG(status))));
      return core::to_int(core::ExitCode::system);
    }
    // 1 would mean a wrong element or damage, which a rank reports; here the launcher was ended by others, or failed.
    if (asked_ == 0 && code == 1 && was_rank_started() && !may_be_elsewhere()) {
      write_all(STDERR_FILENO, "error: the MPI launcher has ended with exit code 1, but no rank has failed\n");
      return core::to_int(core::ExitCode::system);
    }
    // The exit code of such a launcher would mean something else to a user: 1 a wrong result, 0 success. Ranks on other
    // nodes may have started, but they would have printed something, and a user's own launcher that fails without a
    // batch job most likely has no others.
    const bool is_unfit = code != 0 && !is_exit_code_of_ours(code) && !has_other_nodes();
    if (asked_ == 0 && !was_rank_started() && (is_silent || is_unfit || !may_be_elsewhere())) {
      write_all(STDERR_FILENO,
                fmt::format("error: the MPI launcher '{}' has ended before a rank has started, with exit code {}\n"
                            "  fix: {}LOCKSTEP_MPIEXEC, if it is set, must name the launcher of the MPI that this "
                            "program is built with\n",
                            own_launcher(), code, is_silent ? "" : "see what it says above; "));
      return core::to_int(core::ExitCode::system);
    }
    // Launchers end with 1 if they got the signal as well.
    const bool is_as_asked = code == 1 || (code == 0 && told_exit() != 0) || code == 128 + SIGTERM ||
                             code == 128 + SIGUSR1 || step_ != Step::in_order;
    if (asked_ == 0 || !is_as_asked) return code;
    if (!is_resumable_ || asked_ == SIGINT || step_ != Step::in_order || was_rank_started()) return 128 + asked_;
    write_all(STDERR_FILENO, "stopped before training began: there is nothing to save; run it again\n");
    return core::to_int(core::ExitCode::requeue);
  }

 private:
  enum class Step {
    in_order,     ///< SIGUSR1, which launchers pass on to the ranks there are, so it is sent until they have gone
    by_launcher,  ///< SIGTERM, of which launchers make an end within a second, whatever the ranks have to finish
    by_us         ///< SIGTERM to the ranks themselves, and then SIGKILL to all
  };

  /// A step of training may take minutes. But a stopped rank will not end it, nor will a launcher without ranks.
  [[nodiscard]] bool has_waited_enough() {
    constexpr double longest_s = 300, longest_standstill_s = 15, time_to_go_on_s = 10;
    const double waited_s = since_asked_.elapsed().value;
    if (waited_s < longest_standstill_s) return false;
    if (waited_s > longest_s) return true;
    const std::vector<Descendant> job = find_descendants();
    if (!may_be_elsewhere() && std::ranges::none_of(job, runs_this_program)) return true;
    if (!has_continued_ && std::ranges::any_of(job, stands_still)) {
      has_continued_ = true;
      signal_all(job, SIGCONT, is_any_process);
      since_continued_.restart();
    }
    return has_continued_ && since_continued_.elapsed().value > time_to_go_on_s;
  }

  void enter(Step step, pid_t launcher) {
    if (step == Step::by_launcher && !is_forced_)
      write_all(STDERR_FILENO, fmt::format("error: the job did not end within {:.0f} s of {}: it is killed\n",
                                           since_asked_.elapsed().value, describe_signal(asked_)));
    step_ = step;
    since_step_.restart();
    const std::vector<Descendant> job = find_descendants();
    if (step == Step::by_launcher)
      kill(launcher, SIGTERM);
    else
      signal_all(job, SIGTERM, runs_this_program);
    signal_all(job, SIGCONT, stands_still);
  }

  bool is_resumable_;
  int asked_ = 0;
  core::Timer since_asked_;
  bool is_forced_ = false;
  bool has_continued_ = false;
  core::Timer since_continued_;
  Step step_ = Step::in_order;
  core::Timer since_step_;
};

/// Handles a launcher that lives without ranks: none has started for which a watchdog could speak, or all have ended.
class Idleness {
 public:
  explicit Idleness(const LaunchOptions& options)
      : timeout_{options.timeout},
        clock_{*options.clock},
        is_watched_{timeout_.value > 0 && !may_be_elsewhere()},
        last_look_{clock_.now()},
        alone_since_{last_look_} {}

  /// When to look again; nullptr: never.
  [[nodiscard]] const std::timespec* pause() const {
    static constexpr std::timespec soon{.tv_sec = 0, .tv_nsec = 500'000'000}, later{.tv_sec = 5, .tv_nsec = 0};
    return !is_watched_ ? nullptr : was_rank_started() ? &later : &soon;
  }

  /// Ends it, and this process, once that has lasted too long.
  void look(pid_t launcher, LauncherOutput& output, const sigset_t& awaited) {
    const core::Seconds now = clock_.now(), last_look = std::exchange(last_look_, now);
    // The launcher has to live on while nobody takes the output of ranks, or while this process, which passes it on, is
    // stopped.
    const bool was_stopped = now.value - last_look.value > longest_gap_s;
    if (!is_watched_ || was_stopped || is_rank_there() || !takes_output()) {
      alone_since_ = now;
      return;
    }
    const bool is_over = told_exit() != 0 || was_rank_started();
    if (is_over && told_exit() == 0 && rank_ == 0) return;  // how its ranks look is not known
    const double most_s = is_over ? longest_end_s : longest_start_s + timeout_.value;
    if (now.value - alone_since_.value < most_s) return;
    kill(launcher, SIGTERM);
    end_leftovers(clock_);
    static_cast<void>(output.await_end(awaited));
    write_all(STDERR_FILENO, fmt::format("error: the MPI launcher {} for {:.0f} s: it is killed\n"
                                         "  fix: read its messages above; check the limits of a process (ulimit -a)\n",
                                         is_over ? "has kept running without ranks" : "has started no rank", most_s));
    _exit(told_exit() != 0 ? told_exit() : core::to_int(core::ExitCode::stalled));
  }

 private:
  static constexpr double longest_start_s = 15, longest_end_s = 15;
  static constexpr double longest_gap_s = 10;  ///< between looks, with pauses of up to 5 s

  /// Looks for another rank only if the known one has ended: searching takes time from ranks that measure.
  [[nodiscard]] bool is_rank_there() {
    const auto status = rank_ != 0 ? read_process(rank_) : std::nullopt;
    if (status && status->state != 'Z') return true;
    const std::vector<Descendant> job = find_descendants();
    const auto found = std::ranges::find_if(job, runs_this_program);
    if (found == job.end()) return false;
    rank_ = found->process;
    return true;
  }

  core::Seconds timeout_;
  const core::Clock& clock_;
  bool is_watched_;
  pid_t rank_ = 0;  ///< one that was there, or its guard; 0: none was seen
  core::Seconds last_look_;
  core::Seconds alone_since_;
};

/// As the launcher has.
[[noreturn]] void end_after_launcher(const End& end, int status, LauncherOutput& output, const sigset_t& awaited,
                                     const core::Clock& clock) {
  end_leftovers(clock);
  if (const int signal = output.await_end(awaited)) _exit(128 + signal);
  const int exit_code = end.exit_code(status, output.is_silent());
  if (output.stdout_error() == 0) _exit(exit_code);
  const core::Error lost = core::lost_stdout(output.stdout_error());
  core::log_error(lost.what());
  _exit(exit_code != 0 ? exit_code : core::to_int(lost.code()));
}

[[noreturn]] void follow_launcher(pid_t launcher, const sigset_t& awaited, const LaunchOptions& options,
                                  LauncherOutput& output) {
  Idleness idleness{options};
  std::timespec pause{.tv_sec = 0, .tv_nsec = 50'000'000};  // between signals; twice as long each time, up to a second
  End end{options};
  for (int status = 0;;) {
    for (pid_t ended = 1; ended > 0;) {
      ended = waitpid(-1, &status, WNOHANG);
      if (ended == launcher) end_after_launcher(end, status, output, awaited, *options.clock);
    }
    if (!end.is_asked()) idleness.look(launcher, output, awaited);
    const int signal = sigtimedwait(&awaited, nullptr, end.is_asked() ? &pause : idleness.pause());
    if (signal > 0 && signal != SIGCHLD) end.ask(signal);
    end.proceed(launcher);
    if (end.repeats() && end.is_asked() && pause.tv_nsec < 500'000'000) pause.tv_nsec *= 2;
  }
}

}  // namespace

bool may_be_elsewhere() { return is_set("LOCKSTEP_MPIEXEC") || has_other_nodes(); }

int supervise_launcher(char* const* command, const LaunchOptions& options) {
  for (const Descendant& one : find_descendants()) others.push_back(one.process);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // whatever the launcher leaves behind is below this process
  prepare_to_tell_signal();
  LauncherOutput output{options.shows_launcher};
  const sigset_t awaited = awaited_signals();
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  const Started started = start_launcher(command, output, awaited);
  if (started.error != 0) {
    sigprocmask(SIG_UNBLOCK, &awaited, nullptr);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    return started.error;
  }
  output.begin();
  follow_launcher(started.process, awaited, options, output);
}

}  // namespace lockstep::runtime
