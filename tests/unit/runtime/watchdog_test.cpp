#include "runtime/watch/watchdog.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/fnv.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/process.hpp"
#include "runtime/session.hpp"
#include "runtime/watch/board.hpp"
#include "runtime/watch/testimony.hpp"
#include "support/set_clock.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::runtime {
namespace {

namespace fs = std::filesystem;

constexpr int n_ranks = 4;
constexpr core::Seconds timeout{0.4};
constexpr Activity all_phases[] = {Activity::init,   Activity::setup,        Activity::warmup,
                                   Activity::timing, Activity::verification, Activity::finish};

LauncherHint make_hint(const std::string& job, int rank) { return {"test", job, rank, n_ranks, rank, n_ranks}; }

void wait_forever() {
  for (;;) pause();
}

void say(std::string_view text) { static_cast<void>(!write(STDERR_FILENO, text.data(), text.size())); }

/// What became of the processes of a job.
struct Outcome {
  std::map<int, int> exit_codes;  ///< by rank; -signal for those killed
  std::string messages;           ///< stdout, too
};

int to_exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(descriptor, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

/// Runs `body(rank)` in a process per rank; returns when none is left.
Outcome run_job(int n, const std::function<void(int rank)>& body) {
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

TEST(Watchdog, LeavesNobodyBehindByTheRealClock) {
  const std::string job = unique_job();
  const Outcome outcome = run_job(n_ranks, [&](int rank) {
    Watchdog watchdog{make_hint(job, rank), timeout};
    watchdog.enter(Activity::timing);
    watchdog.beat();
    watchdog.set_last_words(fmt::format("farewell of {}\n", rank));
    watchdog.set_on_stall([](const std::string&) {
      say("acted on\n");
      wait_forever();
    });
    if (rank == 2) raise(SIGSTOP);
    wait_forever();
  });
  for (int rank = 0; rank < n_ranks; ++rank) {
    EXPECT_EQ(outcome.exit_codes.at(rank), 4) << "rank " << rank;
    EXPECT_EQ(count_of(outcome.messages, fmt::format("farewell of {}\n", rank)), 1) << outcome.messages;
  }
  EXPECT_EQ(count_of(outcome.messages, "error: stalled"), 1) << outcome.messages;
  EXPECT_EQ(count_of(outcome.messages, "acted on\n"), 1) << outcome.messages;
  EXPECT_EQ(count_of(outcome.messages, "stopped by a signal (state T), last seen in phase timing"), 1)
      << outcome.messages;
  EXPECT_FALSE(has_board(job));
}

/// One rank of a node with its watchdog, and the others as the board has them. Time passes by pass() alone. In a process
/// of its own, as a watchdog that finds a stall ends it.
class Node {
 public:
  explicit Node(int rank, core::Seconds limit = timeout, int n_there = n_ranks, int n_all = n_ranks) {
    const auto hint = [n_all, job = unique_job()](int of) {
      LauncherHint its = make_hint(job, of);
      its.n_ranks = n_all;
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

  /// That rank is stopped from now on.
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
  /// It has ended, and not in order.
  void end(int rank) {
    slot(rank).owner.store(make_process_key(getpid(), 1));
    is_alive_[rank] = false;
  }

  /// All watchdogs that live tick.
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

/// `exit_code` of a process that runs `body`; its messages.
std::string messages_of(int exit_code, const std::function<void()>& body) {
  const Outcome outcome = run_job(1, [&](int) { body(); });
  EXPECT_EQ(outcome.exit_codes.at(0), exit_code) << outcome.messages;
  return outcome.messages;
}

/// Those of one that stalls, once.
std::string report_of(const std::function<void()>& body) {
  std::string messages = messages_of(4, body);
  EXPECT_EQ(count_of(messages, "error: stalled"), 1) << messages;
  return messages;
}

TEST(Watchdog, NamesAnyStoppedRankInAnyPhase) {
  for (int culprit = 0; culprit < n_ranks; ++culprit) {
    for (const Activity phase : all_phases) {
      SCOPED_TRACE(std::to_string(culprit) + " in " + std::string{name(phase)});
      const std::string messages = report_of([&] {
        const int rank = (culprit + 1) % n_ranks;
        Node node{rank};
        node.watchdog().enter(phase);
        node.enter(culprit, phase);
        node.stop(culprit);
        node.pass_until_the_end();
      });
      EXPECT_EQ(count_of(messages, "rank " + std::to_string(culprit) + " on "), 1) << messages;
      const std::string condition = "stopped by a signal (state T), last seen in phase " + std::string{name(phase)};
      EXPECT_EQ(count_of(messages, condition), 1) << messages;
    }
  }
}

TEST(Watchdog, WaitsForTheTimeout) {
  const std::string messages = report_of([] {
    Node node{0};
    node.watchdog().enter(Activity::timing);
    node.pass({0.05});  // it has seen that
    node.stop(1);
    node.pass({timeout.value - 0.05});
    say("waited\n");
    node.pass_until_the_end();
  });
  EXPECT_TRUE(messages.starts_with("waited\nerror: stalled: no progress for 0.4 s in phase timing\n")) << messages;
}

TEST(Watchdog, WaitsLongerWhereThatIsAllowed) {
  const std::string messages = report_of([] {
    Node node{0};
    node.watchdog().enter(Activity::save, {10});
    node.pass({10.2});
    say("waited\n");
    node.pass_until_the_end();
  });
  EXPECT_TRUE(messages.starts_with("waited\nerror: stalled: no progress for 10.4 s in phase save\n")) << messages;
}

TEST(Watchdog, LetsAProcessSayItsLastWords) {
  const auto body = [](bool is_reporter) {
    Node node{0};
    node.watchdog().set_last_words("replaced");
    node.watchdog().set_last_words("farewell\n");
    if (is_reporter) node.stop(1);
    if (!is_reporter && node.board(2).claim_report()) node.board(2).publish_report();
    node.pass_until_the_end();
  };
  const std::string messages = report_of([&] { body(true); });
  EXPECT_EQ(count_of(messages, "farewell\n"), 1) << messages;
  EXPECT_EQ(count_of(messages, "replaced"), 0) << messages;
  EXPECT_EQ(messages_of(4, [&] { body(false); }), "farewell\n") << "another has told";
}

TEST(Watchdog, LetsTheReporterAct) {
  const std::string messages = report_of([] {
    Node node{0};
    node.watchdog().set_on_stall(
        [](const std::string& report) { say("acted on" + report.substr(report.find(':'), report.find('\n'))); });
    node.stop(3);
    node.pass_until_the_end();
  });
  EXPECT_EQ(count_of(messages, "acted on: stalled: no progress"), 1) << messages;
}

TEST(Watchdog, NamesAStoppedRankThoughOthersMove) {
  const std::string messages = report_of([] {
    Node node{0};
    node.watchdog().enter(Activity::work);
    for (int rank = 1; rank < n_ranks; ++rank) node.enter(rank, Activity::work);
    node.pass({0.2});
    node.stop(1);
    for (;; node.pass({0.05})) node.watchdog().beat();
  });
  EXPECT_EQ(count_of(messages, "stopped by a signal"), 1) << messages;
}

TEST(Watchdog, TakesAllThatIsAliveInWorkToMove) {
  EXPECT_EQ(messages_of(0,
                        [] {
                          Node node{0};
                          node.watchdog().enter(Activity::work);
                          for (int rank = 1; rank < n_ranks; ++rank) node.enter(rank, Activity::work);
                          node.pass({10 * timeout.value});
                        }),
            "");
}

TEST(Watchdog, NamesARankThatDiedWhereItsGuardHasNotEndedTheJob) {
  const std::string messages = report_of([] {
    Node node{0};
    node.pass({0.2});
    node.end(2);
    node.pass({5});
    say("waited\n");
    node.pass_until_the_end();
  });
  EXPECT_TRUE(messages.starts_with("waited\n")) << messages;
  EXPECT_EQ(count_of(messages, "rank 2 on "), 1) << messages;
  EXPECT_EQ(count_of(messages, "gone"), 1) << messages;
}

TEST(Watchdog, NamesARankThatNeverCame) {
  const std::string messages = report_of([] {
    Node node{0, timeout, 3};
    node.pass_until_the_end();
  });
  EXPECT_EQ(count_of(messages, "local rank 3 on "), 1) << messages;
}

TEST(Watchdog, NamesTheRankFurthestBehind) {
  const std::string messages = report_of([] {
    Node node{0};
    node.watchdog().enter(Activity::timing);
    node.watchdog().beat();
    for (const auto& [rank, n_beats] : std::map<int, std::uint64_t>{{1, 0}, {2, 1}, {3, 1}}) {
      node.enter(rank, Activity::timing);
      node.slot(rank).position.store((std::uint64_t{1} << 32) + n_beats);
    }
    node.pass_until_the_end();
  });
  EXPECT_EQ(count_of(messages, "rank 1 on "), 1) << messages;
  EXPECT_EQ(count_of(messages, "waiting for it: ranks 0 2 3"), 1) << messages;
}

TEST(Watchdog, UsesTheRankMpiTells) {
  const std::string messages = report_of([] {
    Node node{0};
    node.watchdog().set_rank(100, n_ranks);
    node.stop(1);
    node.pass_until_the_end();
  });
  EXPECT_EQ(count_of(messages, "waiting for it: ranks 100 2 3"), 1) << messages;
}

TEST(Watchdog, HearsWhatOtherNodesHaveToSay) {
  const io::TemporaryFolder folder;
  Finding stopped{Condition::stopped, "far", 1, 5, make_process_key(77, 1), Activity::timing, 7};
  testify(folder.path(), "far", {stopped});
  const std::string messages = report_of([&] {
    Node node{0, timeout, n_ranks, 2 * n_ranks};
    node.watchdog().set_meeting_folder(folder.path());
    node.watchdog().enter(Activity::timing);
    node.pass_until_the_end();
  });
  EXPECT_EQ(count_of(messages, "rank 5 on far (pid 77): stopped by a signal"), 1) << messages;
  EXPECT_EQ(hear_others(folder.path(), "far").size(), 4u) << "and tells the others";
}

TEST(Watchdog, LeavesASlowJobAlone) {
  EXPECT_EQ(messages_of(0,
                        [] {
                          Node node{0};
                          for (int step = 0; step < 9; ++step, node.watchdog().beat()) node.pass({0.35});
                        }),
            "");
}

TEST(Watchdog, LeavesThoseAloneWhoWaitForASlowRank) {
  EXPECT_EQ(messages_of(0,
                        [] {
                          Node node{0};
                          for (int step = 0; step < 9; ++step, node.move(1)) node.pass({0.35});
                        }),
            "");
}

TEST(Watchdog, DoesNotCountTheTimeTheWholeJobWasStopped) {
  const std::string messages = report_of([] {
    Node node{0, {0.8}};
    node.pass({0.2});
    node.clock().advance({1000});
    node.pass({0.35});
    say("waited\n");
    node.pass_until_the_end();
  });
  EXPECT_TRUE(messages.starts_with("waited\n")) << messages;
}

/// Ticks of a process that no launcher has started.
void pass_alone(Activity phase, int n_ticks) {
  const support::SetClock clock;
  LauncherHint by_hand;
  by_hand.job_key = "alone";
  Watchdog watchdog{by_hand, timeout, nullptr, clock};
  watchdog.set_rank(0, n_ranks);
  watchdog.enter(phase);
  for (int i = 0; i < n_ticks; ++i, clock.advance({0.05})) clock.await_look();
}

TEST(Watchdog, SpeaksForItselfWithoutABoard) {
  const std::string messages = report_of([] { pass_alone(Activity::timing, 1000); });
  EXPECT_EQ(count_of(messages, "rank 0 on "), 1) << messages;
  EXPECT_EQ(count_of(messages, "in phase timing"), 1) << messages;
  EXPECT_EQ(messages_of(0, [] { pass_alone(Activity::work, 50); }), "") << "there nobody beats";
}

TEST(Watchdog, SaysTheLastWordsOnceIfTheProcessDoesNotEndSoonAfterASignal) {
  const auto body = [](bool is_signalled) {
    Node node{0, {20}};
    catch_interrupts(node.clock());
    node.watchdog().set_last_words("closing lines\n");
    if (is_signalled) raise(SIGTERM);
    node.pass({0.7});
    say("waited\n");
    node.pass({2});
    const bool is_out = node.watchdog().withdraw_last_words().empty();
    _exit(is_out == is_signalled ? 0 : 1);
  };
  EXPECT_EQ(messages_of(0, [&] { body(true); }), "waited\nclosing lines\n");
  EXPECT_EQ(messages_of(0, [&] { body(false); }), "waited\n");
}

TEST(Watchdog, IsOffWithATimeoutOfZero) {
  EXPECT_EQ(messages_of(0,
                        [] {
                          const support::SetClock clock;
                          Watchdog watchdog{make_hint(unique_job(), 0), {0}, nullptr, clock};
                          watchdog.enter(Activity::init);
                          clock.advance({1000});
                          watchdog.beat();
                        }),
            "");
}

TEST(Activity, NamesAreWords) {
  EXPECT_EQ(name(Activity::init), "init");
  EXPECT_EQ(name(Activity::finish), "finish");
}

}  // namespace
}  // namespace lockstep::runtime
