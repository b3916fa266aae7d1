// Jobs of watched processes, and a node whose time a test sets.
// Invariant: nothing of a job remains once its outcome is known.
// Used by the watchdog's tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/process.hpp"
#include "runtime/watch/board.hpp"
#include "runtime/watch/watchdog.hpp"
#include "support/set_clock.hpp"

namespace lockstep::runtime {

inline constexpr int n_ranks = 4;
inline constexpr core::Seconds timeout{0.4};
inline LauncherHint make_hint(const std::string& job, int rank) { return {"test", job, rank, n_ranks, rank, n_ranks}; }

inline void wait_forever() {
  for (;;) pause();
}

inline void say(std::string_view text) { static_cast<void>(!write(STDERR_FILENO, text.data(), text.size())); }

/// The end of the processes of a job.
struct Outcome {
  std::map<int, int> exit_codes;  ///< by rank; -signal for killed ones
  std::string messages;           ///< including stdout
};

inline int to_exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }

inline std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(descriptor, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

/// Runs `body(rank)` in a process per rank; returns when all have ended.
inline Outcome run_job(int n, const std::function<void(int rank)>& body) {
  std::map<int, pid_t> processes;
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  for (int rank = 0; rank < n; ++rank) {
    processes[rank] = fork();
    if (processes[rank] != 0) continue;
    alarm(60);  // a watchdog that fails must not hang the test
    dup2(ends[1], STDERR_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    body(rank);
    _exit(0);
  }
  close(ends[1]);
  Outcome outcome;
  outcome.messages = read_all(ends[0]);  // until the last process has closed its end
  close(ends[0]);
  for (const auto& [rank, process] : processes) {
    int status = -1;
    waitpid(process, &status, 0);
    outcome.exit_codes[rank] = to_exit_code(status);
  }
  return outcome;
}

inline std::string unique_job() {
  static int counter = 0;
  return "watchdog-test-" + std::to_string(getpid()) + "-" + std::to_string(++counter);
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

/// One rank of a node with its watchdog, and the others as entries of the board. Only pass() lets time pass. It runs in
/// a process of its own, because a watchdog that finds a stall ends it.
class Node {
 public:
  explicit Node(int rank, core::Seconds limit = timeout, int n_there = n_ranks, int n_all = n_ranks,
                pid_t launcher = 0) {
    const auto hint = [n_all, launcher, job = unique_job()](int of) {
      LauncherHint its = make_hint(job, of);
      its.n_ranks = n_all;
      its.launcher = launcher;
      return its;
    };
    for (int other = 0; other < n_there; ++other)
      if (other != rank) boards_[other] = Board::join(hint(other));
    for (const auto& [other, board] : boards_) is_alive_[other] = true;
    watchdog_ = std::make_unique<Watchdog>(hint(rank), limit, nullptr, clock_);
  }

  [[nodiscard]] Watchdog& watchdog() const noexcept { return *watchdog_; }
  [[nodiscard]] const support::SetClock& clock() const noexcept { return clock_; }
  [[nodiscard]] Board& board(int rank) const { return *boards_.at(rank); }
  [[nodiscard]] BoardSlot& slot(int rank) const { return board(rank).mine(); }

  void enter(int rank, Activity phase) const { slot(rank).phase.store(static_cast<std::uint32_t>(phase)); }
  void move(int rank) const { slot(rank).moved_ns.store(now_ns()); }

  /// From now on that rank is stopped.
  void stop(int rank) {
    const pid_t process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      raise(SIGSTOP);
      wait_forever();
    }
    waitpid(process, nullptr, WUNTRACED);
    slot(rank).owner.store(make_process_key(process, read_process(process)->start_time));
    is_alive_[rank] = false;
  }
  /// The rank ends abnormally.
  void end(int rank) {
    slot(rank).owner.store(make_process_key(getpid(), 1));
    is_alive_[rank] = false;
  }

  /// All living watchdogs tick.
  void pass(core::Seconds time) const {
    for (int i = static_cast<int>(std::lround(time.value / tick_s)); i > 0; --i) {
      clock_.advance({tick_s});
      for (const auto& [rank, is_alive] : is_alive_)
        if (is_alive) slot(rank).alive_ns.store(now_ns());
      clock_.await_look();
    }
  }
  [[noreturn]] void pass_until_the_end() const {
    for (;;) pass({tick_s});
  }

 private:
  static constexpr double tick_s = 0.05;

  [[nodiscard]] std::int64_t now_ns() const { return std::llround(clock_.now().value * 1e9); }

  support::SetClock clock_{};
  std::map<int, std::unique_ptr<Board>> boards_{};
  std::map<int, bool> is_alive_{};
  std::unique_ptr<Watchdog> watchdog_{};
};

/// Expects that a process that runs `body` ends with `exit_code`; returns its messages.
inline std::string messages_of(int exit_code, const std::function<void()>& body) {
  const Outcome outcome = run_job(1, [&](int) { body(); });
  EXPECT_EQ(outcome.exit_codes.at(0), exit_code) << outcome.messages;
  return outcome.messages;
}

/// The messages of one that stalls, once.
inline std::string report_of(const std::function<void()>& body) {
  std::string messages = messages_of(4, body);
  EXPECT_EQ(count_of(messages, "error: stalled"), 1) << messages;
  return messages;
}

}  // namespace lockstep::runtime
