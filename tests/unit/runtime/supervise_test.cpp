#include "runtime/watch/supervise.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "support/set_clock.hpp"
#include "support/text.hpp"
#include "unit/io/temporary_folder.hpp"
#include "unit/runtime/made_up_launcher.hpp"

namespace lockstep::runtime {
namespace {

using support::has;
using support::SetClock;

/// A process that starts a launcher and watches it, by a clock that this one sets.
class Supervisor {
 public:
  /// The launcher is a shell that runs `script`; returns once that has made the file $ready.
  /// `ignores`: this program ignores SIGINT and SIGHUP, as a shell's command in the background.
  explicit Supervisor(const std::string& script, core::Seconds timeout = {3}, bool ignores = false)
      : ignores_{ignores},
        memory_{mmap(nullptr, sizeof(SetClock), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)},
        clock_{new (memory_) SetClock} {
    EXPECT_EQ(pipe(ends_), 0);
    process_ = fork();
    if (process_ == 0) supervise(script, timeout);
    close(ends_[1]);
    while (!std::filesystem::exists(folder_ / "ready") && !has_ended()) pause();
    look();
  }
  ~Supervisor() {
    if (!has_ended()) kill(process_, SIGKILL);
    close(ends_[0]);
    munmap(memory_, sizeof(SetClock));  // the clock's notes are in the heap of the process that slept by it
  }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  [[nodiscard]] bool has_ended() {
    int status = 0;
    if (!exit_code_ && waitpid(process_, &status, WNOHANG) == process_)
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return exit_code_.has_value();
  }
  /// Returns when it has looked at the present time, and has done what is due.
  void pass(double seconds) {
    constexpr double longest_step = 5;  // as between its own looks: a longer one means that it was stopped
    for (; seconds > 0; seconds -= longest_step) {
      clock_->advance({std::min(seconds, longest_step)});
      look();
    }
  }
  /// That time passes while it is stopped.
  void pass_stopped(double seconds) {
    stop(process_);
    clock_->advance({seconds});
    send(SIGCONT);
  }
  void send(int signal) {
    kill(process_, signal);
    look();
  }
  [[nodiscard]] int await_end() {
    while (!has_ended()) pause();
    return *exit_code_;
  }
  /// Its messages, after its end.
  [[nodiscard]] std::string messages() const {
    std::string text;
    char part[4096];
    for (ssize_t n = 0; (n = read(ends_[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
    return text;
  }

 private:
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds{1}); }

  [[noreturn]] void supervise(const std::string& script, core::Seconds timeout) const {
    alarm(60);
    for (const int place : {STDOUT_FILENO, STDERR_FILENO}) dup2(ends_[1], place);
    for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, ignores_ ? SIG_IGN : SIG_DFL);
    unsetenv("LOCKSTEP_MPIEXEC");
    setenv("ready", (folder_ / "ready").c_str(), 1);
    std::string words[] = {"sh", "-c", script + "\n: >\"$ready\"; while :; do sleep 0.05; done"};
    char* command[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    _exit(supervise_launcher(command, {.timeout = timeout, .clock = clock_}));
  }

  // The signal for the end of a child that does not exist wakes it.
  void look() {
    for (const long seen = clock_->n_looks(); clock_->n_looks() < seen + 6 && !has_ended(); pause())
      kill(process_, SIGCHLD);
  }

  bool ignores_;
  io::TemporaryFolder folder_{};
  void* memory_;
  SetClock* clock_;
  int ends_[2] = {-1, -1};
  pid_t process_ = 0;
  std::optional<int> exit_code_{};
};

TEST(Supervise, ALauncherThatStartsNoRankIsEnded) {
  Supervisor supervisor{""};
  supervisor.pass(17.9);
  EXPECT_FALSE(supervisor.has_ended());
  supervisor.pass(0.2);
  EXPECT_EQ(supervisor.await_end(), 4);
  EXPECT_TRUE(has(supervisor.messages(), "error: the MPI launcher has started no rank for 18 s: it is killed"));
}

TEST(Supervise, WithoutATimeoutItIsWatchedOnceItsEndIsAskedFor) {
  Supervisor supervisor{"trap '' USR1; trap 'exit 1' TERM", {0}};
  supervisor.pass(100);
  supervisor.send(SIGTERM);
  supervisor.pass(14.9);
  EXPECT_FALSE(supervisor.has_ended());
  supervisor.pass(0.2);
  EXPECT_EQ(supervisor.await_end(), 128 + SIGTERM);
}

/// A rank has started, and has told that it ends with 3.
constexpr const char* tells_an_end =
    "put() { printf \"$2\" | dd of=\"$LOCKSTEP_SIGNAL_URI\" bs=1 seek=\"$1\" conv=notrunc 2>/dev/null; }\n"
    "put 4 s; put 8 '\\003\\000\\000\\000'";

TEST(Supervise, ALauncherThatLivesOnAfterItsRanksIsEndedAsTheyHave) {
  Supervisor supervisor{tells_an_end};
  supervisor.pass(14.9);
  EXPECT_FALSE(supervisor.has_ended());
  supervisor.pass(0.2);
  EXPECT_EQ(supervisor.await_end(), 3);
  EXPECT_TRUE(
      has(supervisor.messages(), "error: the MPI launcher has kept running without ranks for 15 s: it is killed"));
}

// Its launcher may have to wait for it, to get rid of the output of ranks that have ended.
TEST(Supervise, TimeInWhichItIsStoppedItselfDoesNotCount) {
  Supervisor supervisor{tells_an_end};
  supervisor.pass(14);
  supervisor.pass_stopped(100);
  supervisor.pass(14.9);
  EXPECT_FALSE(supervisor.has_ended());
  supervisor.pass(0.2);
  EXPECT_EQ(supervisor.await_end(), 3);
}

TEST(Supervise, WhileItIsStoppedItsLauncherGoesOnAndNoOutputIsLost) {
  Supervisor supervisor{
      "trap 'exit 1' USR1\n"
      "kill -STOP $PPID; until grep -q ') T ' /proc/$PPID/stat; do sleep 0.01; done\n"
      "i=0; while [ $i -lt 1000 ]; do echo \"a line of a rank\"; i=$((i + 1)); done; kill -CONT $PPID"};
  supervisor.send(SIGTERM);
  EXPECT_EQ(supervisor.await_end(), 128 + SIGTERM);
  const std::string messages = supervisor.messages();
  EXPECT_EQ(std::ranges::count(messages, '\n'), 1000) << messages;
}

TEST(Supervise, ASignalEndsALauncherThatIgnoresItStepByStep) {
  Supervisor supervisor{"trap '' INT TERM USR1"};
  supervisor.send(SIGTERM);
  for (const double seconds : {14.9, 0.2, 4.9, 0.2, 2.4}) {
    supervisor.pass(seconds);
    EXPECT_FALSE(supervisor.has_ended());
  }
  supervisor.pass(0.2);
  EXPECT_EQ(supervisor.await_end(), 128 + SIGTERM);
  EXPECT_TRUE(
      has(supervisor.messages(), "error: the job did not end within 15 s of signal 15 (SIGTERM): it is killed"));
}

TEST(Supervise, TheSignalThatCameIsTold) {
  for (const int signal : {SIGHUP, SIGUSR2, SIGINT}) {
    Supervisor supervisor{
        "trap 'dd if=\"$LOCKSTEP_SIGNAL_URI\" bs=1 count=4 2>/dev/null | od -A n -t d4; exit 1' USR1"};
    supervisor.send(signal);
    EXPECT_EQ(supervisor.await_end(), 128 + signal);
    EXPECT_TRUE(has(supervisor.messages(), " " + std::to_string(signal) + "\n"));
  }
}

TEST(Supervise, WhatIsIgnoredStaysIgnoredAndWhatBatchSystemsSendIsNot) {
  Supervisor supervisor{"trap 'exit 1' USR1", {3}, true};
  for (const int signal : {SIGINT, SIGHUP}) {
    supervisor.send(signal);
    EXPECT_FALSE(supervisor.has_ended());
  }
  supervisor.send(SIGTERM);
  EXPECT_EQ(supervisor.await_end(), 128 + SIGTERM);
}

TEST(Supervise, ASecondSignalEndsAtOnceUnlessItIsTheSame) {
  Supervisor supervisor{"trap '' USR1; trap 'exit 1' TERM"};
  supervisor.send(SIGINT);
  supervisor.pass(0.9);
  supervisor.send(SIGINT);
  EXPECT_FALSE(supervisor.has_ended());
  supervisor.pass(0.2);
  supervisor.send(SIGINT);
  EXPECT_EQ(supervisor.await_end(), 128 + SIGINT);
  EXPECT_EQ(supervisor.messages(), "");
}

}  // namespace
}  // namespace lockstep::runtime
