#include "runtime/jobs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "runtime/interrupt.hpp"

namespace lockstep::runtime {
namespace {

core::Descriptor open_output(const std::string& path) {
  core::Descriptor file{open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (!file) core::fail_system(fmt::format("cannot write '{}': {}", path, core::system_reason(errno)));
  return file;
}

/// The job has its own process group, so it gets no Ctrl-C from the terminal, and the signal is passed on exactly once.
[[noreturn]] void become_job(char* const* command, pid_t parent, int out, int err, const sigset_t& signals) {
  std::signal(SIGPIPE, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(core::to_int(core::ExitCode::system));
  setpgid(0, 0);
  const core::Descriptor nothing{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  if (nothing) dup2(nothing.get(), STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execv("/proc/self/exe", command);
  dprintf(STDERR_FILENO, "error: cannot start this program again: %s\n", core::system_reason(errno).c_str());
  _exit(core::to_int(core::ExitCode::system));
}

}  // namespace

Jobs::Jobs() {
  held_ = asking_signals();
  sigprocmask(SIG_BLOCK, &held_, &before_);
}

// Answers a signal that has come, at least by the exit code.
Jobs::~Jobs() {
  constexpr std::timespec none{};
  while (sigtimedwait(&held_, nullptr, &none) > 0) continue;
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int Jobs::await_signal() {
  constexpr std::timespec pause{.tv_sec = 0, .tv_nsec = 20'000'000};
  const int signal = sigtimedwait(&held_, nullptr, &pause);
  if (signal <= 0) return 0;
  if (asked_ == 0) asked_ = signal;
  return signal;
}

int Jobs::run(const std::vector<std::string>& arguments, const JobOutput& output, const std::function<int()>& due) {
  std::vector<std::string> words{"lockstep"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> command;
  for (std::string& word : words) command.push_back(word.data());
  command.push_back(nullptr);
  const core::Descriptor out = open_output(output.out), err = open_output(output.err);
  await_signal();
  if (asked_ != 0) return 128 + asked_;
  const pid_t parent = getpid();
  const pid_t job = fork();
  if (job < 0) core::fail_system(fmt::format("cannot start this program again: {}", core::system_reason(errno)));
  if (job == 0) become_job(command.data(), parent, out.get(), err.get(), before_);
  int status = 0;
  while (waitpid(job, &status, WNOHANG) != job) {
    if (const int signal = await_signal())
      kill(job, signal);
    else if (const int wanted = due ? due() : 0)
      kill(job, wanted);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace lockstep::runtime
