#include "runtime/watch/watchdog.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "core/fnv.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/watch/testimony.hpp"
#include "unit/io/temporary_folder.hpp"
#include "unit/runtime/full_output.hpp"
#include "unit/runtime/made_up_launcher.hpp"
#include "unit/runtime/watched_node.hpp"

namespace lockstep::runtime {
namespace {

namespace fs = std::filesystem;

constexpr Activity all_phases[] = {Activity::init,   Activity::setup,        Activity::warmup,
                                   Activity::timing, Activity::verification, Activity::finish};

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

// A stopped launcher or guard is continued, because it must report how the rank ends, or end the job.
TEST(Watchdog, NamesALauncherThatIsStoppedThoughItsRanksMove) {
  for (const Activity phase : {Activity::init, Activity::training, Activity::save, Activity::finish}) {
    const MadeUpLauncher launcher{MadeUpLauncher::stay};
    const std::string messages = report_of([&] {
      Node node{0, timeout, n_ranks, n_ranks, launcher.process()};
      node.watchdog().enter(phase, {1000});
      stop(launcher.process());
      node.pass({timeout.value - 0.15});
      say("waited\n");
      for (int beat = 0; beat < 6; ++beat, node.watchdog().beat()) node.pass({0.05});
      say("late\n");
    });
    const std::string told =
        fmt::format("waited\nerror: stalled: stopped for 0.4 s, in phase {}\n  MPI launcher on ", name(phase));
    EXPECT_TRUE(messages.starts_with(told)) << messages;
    EXPECT_EQ(count_of(messages, fmt::format("(pid {}): stopped by a signal (state T)\n", launcher.process())), 1);
    EXPECT_EQ(count_of(messages, "late"), 0) << messages;
    EXPECT_NE(read_process(launcher.process())->state, 'T');
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

/// Ticks of a process that was started without a launcher.
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

TEST(Watchdog, TellsThatNobodyReadsItsOutput) {
  const std::string alone = report_of([] {
    fill_stdout();
    pass_alone(Activity::training, 1000);
  });
  EXPECT_EQ(count_of(alone, "): nobody reads its output\n"), 1) << alone;
  const std::string among_others = report_of([] {
    fill_stdout();
    Node node{0};
    node.pass_until_the_end();
  });
  EXPECT_EQ(count_of(among_others, "alive, but nobody reads its output, last seen in phase init\n"), n_ranks)
      << among_others << "all ranks of this node are one process";
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
    node.watchdog().set_last_words("lines that contradict them\n");
    node.pass({0.1});
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
