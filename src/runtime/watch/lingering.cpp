#include "runtime/watch/lingering.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>
#include <vector>

#include "core/print.hpp"
#include "runtime/process.hpp"

namespace lockstep::runtime {
namespace {

constexpr core::Seconds longest_stay{15};
constexpr core::Seconds time_after_sigterm{5};
constexpr int look_interval_ms = 50;
constexpr int looks_for_children = 4;  // one of this many looks checks for children

/// Names of launchers of one job. prted serves a job of prterun as well as those of others: see is_for_one_job().
constexpr std::array<std::string_view, 7> launchers{"mpirun", "mpiexec", "orterun",        "prterun",
                                                    "orted",  "prted",   "hydra_pmi_proxy"};

bool is_for_one_job(std::string_view name) {
  if (std::ranges::none_of(launchers, [name](std::string_view one) { return name.starts_with(one); })) return false;
  const char* const job = std::getenv("PMIX_NAMESPACE");
  return name != "prted" || (job != nullptr && std::string_view{job}.starts_with("prterun"));
}

core::Descriptor open_handle([[maybe_unused]] pid_t process) noexcept {
#ifdef SYS_pidfd_open
  return core::Descriptor{static_cast<int>(syscall(SYS_pidfd_open, process, 0))};
#else
  return {};
#endif
}

bool has_gone(const LauncherProcess& launcher) {
  const auto status = read_process(launcher.process);
  return !status || status->start_time != launcher.start_time || status->state == 'Z' || status->state == 'X';
}

/// Sends through its pidfd, if there is one, because another process may have got its pid meanwhile.
void send([[maybe_unused]] const LauncherProcess& launcher, int signal) {
#ifdef SYS_pidfd_send_signal
  if (launcher.handle) {
    syscall(SYS_pidfd_send_signal, launcher.handle.get(), signal, nullptr, 0);
    return;
  }
#endif
  if (!has_gone(launcher)) kill(launcher.process, signal);
}

/// Returns after a short time, or earlier if the launcher ends.
void pause(const LauncherProcess& launcher) {
  pollfd end{.fd = launcher.handle.get(), .events = POLLIN, .revents = 0};
  if (launcher.handle)
    poll(&end, 1, look_interval_ms);
  else
    std::this_thread::sleep_for(std::chrono::milliseconds{look_interval_ms});
}

/// Returns false if it has not ended after `time`.
bool ends_within(const LauncherProcess& launcher, core::Seconds time, const core::Clock& clock) {
  const core::Timer since_asked{clock};
  while (!has_gone(launcher)) {
    if (since_asked.elapsed().value > time.value) return false;
    pause(launcher);
  }
  return true;
}

/// Returns false if it has ended by itself.
bool stays(const LauncherProcess& launcher, const core::Clock& clock) {
  core::Timer since_alone{clock};
  for (int look = 0; !has_gone(launcher); ++look) {
    if (look % looks_for_children == 0 && (has_living_child(launcher.process) || has_unread_output(launcher.process)))
      since_alone.restart();
    if (since_alone.elapsed().value > longest_stay.value && look % looks_for_children == 0) return true;
    pause(launcher);
  }
  return false;
}

/// Closes the files that both this process and another one were started with, such as pipes that a launcher reads to
/// their end.
void close_all_but(int kept) {
  std::vector<int> open;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd", error})
    open.push_back(std::atoi(entry.path().filename().c_str()));
  for (const int one : open)
    if (one != kept) close(one);
}

}  // namespace

std::optional<LauncherProcess> find_launcher(const LauncherHint& hint) {
  if (hint.name.empty() || hint.name == "Slurm srun" || hint.launcher <= 1) return std::nullopt;
  LauncherProcess launcher{.process = hint.launcher, .handle = open_handle(hint.launcher)};
  const auto status = read_process(launcher.process);
  if (!status || !is_of_this_user(launcher.process)) return std::nullopt;
  launcher.start_time = status->start_time;
  launcher.name = name_of_process(launcher.process);
  launcher.has_all_ranks = hint.n_ranks && hint.n_ranks == hint.n_local_ranks;
  if (!is_for_one_job(launcher.name)) return std::nullopt;
  return launcher;
}

void await_end_of(const LauncherProcess& launcher, const core::Clock& clock) {
  if (!stays(launcher, clock)) return;
  const std::string text =
      fmt::format("error: the MPI launcher ({}, pid {}) has kept running without ranks for {:.0f} s: it is killed\n",
                  launcher.name, launcher.process, longest_stay.value);
  if (const core::Descriptor err = open_output_of(launcher.process, STDERR_FILENO))
    core::write_in_time(err.get(), text);
  send(launcher, SIGTERM);
  send(launcher, SIGCONT);
  if (!ends_within(launcher, time_after_sigterm, clock)) send(launcher, SIGKILL);
}

void leave_watch_over(const LauncherProcess& launcher) noexcept {
  if (fork() != 0) return;
  setsid();
  prctl(PR_SET_NAME, "lockstep-last");
  for (int signal = 1; signal < SIGRTMIN; ++signal) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  try {
    close_all_but(launcher.handle.get());
    await_end_of(launcher);
  } catch (const std::exception&) {
  }
  _exit(0);
}

}  // namespace lockstep::runtime
