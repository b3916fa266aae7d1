#include "runtime/watch/watchdog.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/fnv.hpp"
#include "core/timer.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/process.hpp"

namespace lockstep::runtime {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr int n_ranks = 4;
constexpr core::Seconds timeout{0.4};
constexpr Activity all_phases[] = {Activity::init,   Activity::setup,        Activity::warmup,
                                   Activity::timing, Activity::verification, Activity::finish};

LauncherHint make_hint(const std::string& job, int rank) { return {"test", job, rank, n_ranks, rank, n_ranks}; }

void wait_forever() {
  for (;;) pause();
}

/// What became of the processes of a job.
struct Outcome {
  std::map<int, int> exit_codes;  ///< by rank; -signal for those killed
  std::string messages;
  core::Seconds elapsed;
};

int to_exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(descriptor, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

/// A process per rank, stderr of all in one pipe.
struct Job {
  std::map<int, pid_t> processes;
  int messages = -1;
  core::Stopwatch watch;
};

/// Runs `body(rank)` in a process per rank.
Job start_job(const std::function<void(int rank)>& body) {
  Job job;
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  for (int rank = 0; rank < n_ranks; ++rank) {
    job.processes[rank] = fork();
    if (job.processes[rank] != 0) continue;
    alarm(20);  // a watchdog that fails must not hang the test
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    body(rank);
    _exit(0);
  }
  close(ends[1]);
  job.messages = ends[0];
  return job;
}

/// Returns when no process of the job is left.
Outcome finish_job(const Job& job) {
  Outcome outcome;
  outcome.messages = read_all(job.messages);  // until the last process has closed its end
  outcome.elapsed = job.watch.elapsed();
  close(job.messages);
  for (const auto& [rank, process] : job.processes) {
    int status = -1;
    waitpid(process, &status, 0);
    outcome.exit_codes[rank] = to_exit_code(status);
  }
  return outcome;
}

Outcome run_job(const std::function<void(int rank)>& body) { return finish_job(start_job(body)); }

std::string unique_job() {
  static int counter = 0;
  return "watchdog-test-" + std::to_string(getpid()) + "-" + std::to_string(++counter);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

bool has_board(const std::string& job) {
  return fs::exists(fmt::format("/dev/shm/lockstep-{}-{:016x}", getuid(), core::fnv1a(job)));
}

void expect_all_stalled(const Outcome& outcome) {
  for (int rank = 0; rank < n_ranks; ++rank) EXPECT_EQ(outcome.exit_codes.at(rank), 4) << "rank " << rank;
  EXPECT_EQ(count_of(outcome.messages, "error: stalled"), 1) << outcome.messages;
  EXPECT_LT(outcome.elapsed.value, timeout.value + 15);
}

/// Goes through the phases up to `last`, then waits for a rank that stopped there.
void stop_in_phase(const std::string& job, int rank, int culprit, Activity last) {
  Watchdog watchdog{make_hint(job, rank), timeout};
  for (const Activity phase : all_phases) {
    watchdog.enter(phase);
    for (int step = 0; step < 3; ++step) watchdog.beat();
    if (phase == last) break;
  }
  if (rank == culprit) raise(SIGSTOP);
  wait_forever();
}

TEST(Watchdog, NamesAnyStoppedRankInAnyPhaseAndLeavesNobodyBehind) {
  std::vector<std::string> names;
  std::map<std::pair<int, Activity>, Job> jobs;  // all at once: they sleep most of the time
  for (int culprit = 0; culprit < n_ranks; ++culprit) {
    for (const Activity phase : all_phases) {
      names.push_back(unique_job());
      jobs[{culprit, phase}] =
          start_job([&, job = names.back()](int rank) { stop_in_phase(job, rank, culprit, phase); });
    }
  }
  for (const auto& [where, job] : jobs) {
    const auto& [culprit, phase] = where;
    SCOPED_TRACE(std::to_string(culprit) + " in " + std::string{name(phase)});
    const Outcome outcome = finish_job(job);
    expect_all_stalled(outcome);
    EXPECT_EQ(count_of(outcome.messages, "rank " + std::to_string(culprit) + " on "), 1) << outcome.messages;
    const std::string condition = "stopped by a signal (state T), last seen in phase " + std::string{name(phase)};
    EXPECT_EQ(count_of(outcome.messages, condition), 1) << outcome.messages;
  }
  EXPECT_TRUE(std::ranges::none_of(names, has_board));
}

TEST(Watchdog, LetsAProcessSayItsLastWords) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    Watchdog watchdog{make_hint(job, rank), timeout};
    if (rank < 2) watchdog.set_last_words("replaced");
    if (rank < 2) watchdog.set_last_words("farewell of " + std::to_string(rank) + "\n");
    if (rank == 0) raise(SIGSTOP);
    wait_forever();
  });
  expect_all_stalled(outcome);
  EXPECT_EQ(count_of(outcome.messages, "farewell of 0\n"), 1) << outcome.messages;
  EXPECT_EQ(count_of(outcome.messages, "farewell of 1\n"), 1) << outcome.messages;
  EXPECT_EQ(count_of(outcome.messages, "replaced"), 0) << outcome.messages;
}

TEST(Watchdog, LetsTheReporterActAndDoesNotWaitForLong) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    Watchdog watchdog{make_hint(job, rank), timeout};
    watchdog.set_on_stall([](const std::string& report) {
      const std::string text = "acted on" + report.substr(report.find(':'), report.find('\n'));
      static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
      wait_forever();
    });
    if (rank == 3) raise(SIGSTOP);
    wait_forever();
  });
  expect_all_stalled(outcome);
  EXPECT_EQ(count_of(outcome.messages, "acted on: stalled: no progress"), 1) << outcome.messages;
}

TEST(Watchdog, NamesAStoppedRankThoughOthersMove) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    Watchdog watchdog{make_hint(job, rank), timeout};
    watchdog.enter(Activity::work);
    std::this_thread::sleep_for(200ms);
    if (rank == 1) raise(SIGSTOP);
    for (;; std::this_thread::sleep_for(10ms)) watchdog.beat();
  });
  expect_all_stalled(outcome);
  EXPECT_EQ(count_of(outcome.messages, "stopped by a signal"), 1) << outcome.messages;
}

TEST(Watchdog, TakesAllThatIsAliveInWorkToMove) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    Watchdog watchdog{make_hint(job, rank), timeout};
    watchdog.enter(Activity::work);
    std::this_thread::sleep_for(4 * 400ms);
  });
  for (int rank = 0; rank < n_ranks; ++rank) EXPECT_EQ(outcome.exit_codes.at(rank), 0) << outcome.messages;
}

TEST(Watchdog, NamesARankThatDied) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    Watchdog watchdog{make_hint(job, rank), timeout};
    std::this_thread::sleep_for(200ms);  // until all are there
    if (rank == 2) raise(SIGKILL);
    wait_forever();
  });
  EXPECT_EQ(outcome.exit_codes.at(2), -SIGKILL);
  for (const int rank : {0, 1, 3}) EXPECT_EQ(outcome.exit_codes.at(rank), 4);
  EXPECT_EQ(count_of(outcome.messages, "rank 2 on "), 1) << outcome.messages;
  EXPECT_EQ(count_of(outcome.messages, "gone"), 1) << outcome.messages;
}

TEST(Watchdog, NamesARankThatNeverCame) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    if (rank == 3) return;
    Watchdog watchdog{make_hint(job, rank), timeout};
    wait_forever();
  });
  EXPECT_EQ(outcome.exit_codes.at(0), 4);
  EXPECT_EQ(count_of(outcome.messages, "local rank 3 on "), 1) << outcome.messages;
}

TEST(Watchdog, NamesTheRankFurthestBehind) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    Watchdog watchdog{make_hint(job, rank), timeout};
    watchdog.enter(Activity::timing);
    if (rank != 1) watchdog.beat();
    wait_forever();
  });
  expect_all_stalled(outcome);
  EXPECT_EQ(count_of(outcome.messages, "rank 1 on "), 1) << outcome.messages;
  EXPECT_EQ(count_of(outcome.messages, "waiting for it: ranks 0 2 3"), 1) << outcome.messages;
}

TEST(Watchdog, UsesTheRankMpiTells) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    Watchdog watchdog{make_hint(job, rank), timeout};
    watchdog.set_rank(rank + 100, n_ranks);
    if (rank == 0) raise(SIGSTOP);
    wait_forever();
  });
  expect_all_stalled(outcome);
  EXPECT_EQ(count_of(outcome.messages, "rank 100 on "), 1) << outcome.messages;
}

// These two must hold on a busy machine as well: steps take a small part of the timeout.
constexpr core::Seconds long_timeout{1.5};
constexpr auto slow_step = 200ms;
constexpr int n_slow_steps = 9;  // together longer than the timeout

TEST(Watchdog, LeavesASlowJobAlone) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    Watchdog watchdog{make_hint(job, rank), long_timeout};
    for (int step = 0; step < n_slow_steps; ++step) {
      std::this_thread::sleep_for(slow_step);
      watchdog.beat();
    }
  });
  for (int rank = 0; rank < n_ranks; ++rank) EXPECT_EQ(outcome.exit_codes.at(rank), 0);
  EXPECT_EQ(outcome.messages, "");
}

TEST(Watchdog, LeavesThoseAloneWhoWaitForASlowRank) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    Watchdog watchdog{make_hint(job, rank), long_timeout};
    for (int step = 0; step < n_slow_steps; ++step) {
      std::this_thread::sleep_for(slow_step);
      if (rank == 1) watchdog.beat();
    }
  });
  for (int rank = 0; rank < n_ranks; ++rank) EXPECT_EQ(outcome.exit_codes.at(rank), 0);
  EXPECT_EQ(outcome.messages, "");
}

TEST(Watchdog, DoesNotCountTheTimeTheWholeJobWasStopped) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    Watchdog watchdog{make_hint(job, rank), {0.8}};
    std::this_thread::sleep_for(200ms);
    const pid_t me = getpid();
    if (fork() == 0) {
      close(STDERR_FILENO);
      std::this_thread::sleep_for(1000ms);
      kill(me, SIGCONT);
      _exit(0);
    }
    raise(SIGSTOP);
    std::this_thread::sleep_for(100ms);
  });
  for (int rank = 0; rank < n_ranks; ++rank) EXPECT_EQ(outcome.exit_codes.at(rank), 0);
  EXPECT_EQ(outcome.messages, "");
}

TEST(Watchdog, SpeaksForItselfWithoutABoard) {
  const Outcome outcome = run_job([](int rank) {
    LauncherHint by_hand;
    by_hand.job_key = "alone";
    Watchdog watchdog{by_hand, timeout};
    watchdog.set_rank(rank, n_ranks);
    watchdog.enter(Activity::timing);
    if (rank == 0) wait_forever();
  });
  EXPECT_EQ(outcome.exit_codes.at(0), 4);
  EXPECT_EQ(outcome.exit_codes.at(1), 0);
  EXPECT_EQ(count_of(outcome.messages, "rank 0 on "), 1) << outcome.messages;
  EXPECT_EQ(count_of(outcome.messages, "in phase timing"), 1) << outcome.messages;
}

// Stdout of the processes goes where stderr goes, for the messages to show both.
TEST(Watchdog, SaysTheLastWordsOnceIfTheProcessDoesNotEndSoonAfterASignal) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    catch_interrupts();
    Watchdog watchdog{make_hint(job, rank), {20}};
    watchdog.set_last_words("closing lines\n");
    if (rank == 0) raise(SIGTERM);
    std::this_thread::sleep_for(rank == 0 ? 4000ms : 1200ms);
    const bool is_out = watchdog.withdraw_last_words().empty();
    _exit(is_out == (rank == 0) ? 0 : 1);
  });
  for (int rank = 0; rank < n_ranks; ++rank) EXPECT_EQ(outcome.exit_codes.at(rank), 0) << rank;
  EXPECT_EQ(outcome.messages, "closing lines\n");
}

TEST(Watchdog, IsOffWithATimeoutOfZero) {
  const std::string job = unique_job();
  const Outcome outcome = run_job([&](int rank) {
    Watchdog watchdog{make_hint(job, rank), {0}};
    watchdog.enter(Activity::init);
    watchdog.beat();
    std::this_thread::sleep_for(300ms);
  });
  for (int rank = 0; rank < n_ranks; ++rank) EXPECT_EQ(outcome.exit_codes.at(rank), 0);
}

TEST(Activity, NamesAreWords) {
  EXPECT_EQ(name(Activity::init), "init");
  EXPECT_EQ(name(Activity::finish), "finish");
}

}  // namespace
}  // namespace lockstep::runtime
