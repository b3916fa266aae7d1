#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>

#include "runtime/interrupt.hpp"
#include "runtime/watch/guard.hpp"
#include "runtime/watch/watchdog.hpp"
#include "unit/runtime/made_up_launcher.hpp"
#include "unit/runtime/watched_node.hpp"

namespace lockstep::runtime {
namespace {

TEST(Watchdog, NamesAGuardThatIsStopped) {
  const std::string messages = report_of([] {
    guard_rank(make_hint("guarded", 0), timeout);
    Node node{0};
    node.watchdog().enter(Activity::save, {1000});
    stop(getppid());
    node.pass_until_the_end();
  });
  EXPECT_TRUE(messages.starts_with("error: stalled: stopped for 0.4 s, in phase save\n  guard of rank 0 on "))
      << messages;
}

/// The exit code of the orphan that the process of `body` leaves and that fails, and the messages of both.
std::pair<int, std::string> orphan_of(const std::function<void()>& body) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::string messages = messages_of(-SIGKILL, body);
  int status = 0;
  for (int one = 0; waitpid(-1, &one, 0) > 0;) status = one != 0 ? one : status;
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  return {to_exit_code(status), messages};
}

/// Stops this process; `guard` is killed once it is.
void stop_without(pid_t guard) {
  const pid_t rank = getpid();
  if (fork() == 0) {
    while (read_process(rank)->state != 'T') usleep(100);
    kill(guard, SIGKILL);
    _exit(0);
  }
  raise(SIGSTOP);
}

TEST(Watchdog, TellsThatItsGuardWasKilledInAnyPhaseAlsoIfItWasStopped) {
  for (const Activity phase : {Activity::init, Activity::training, Activity::save, Activity::work, Activity::finish}) {
    for (const bool is_stopped : {false, true}) {
      const auto [exit_code, messages] = orphan_of([&] {
        guard_rank(make_hint("guarded", 0), {60});
        alarm(60);
        Node node{0, {1000}};
        node.watchdog().enter(phase);
        node.watchdog().set_on_stall([](const std::string& report) { say("acted on " + report); });
        if (is_stopped)
          stop_without(getppid());
        else
          kill(getppid(), SIGKILL);
        node.pass_until_the_end();
      });
      EXPECT_EQ(exit_code, 3) << messages;
      const std::string told = fmt::format(") ends, in phase {}: its guard (pid ", name(phase));
      EXPECT_EQ(count_of(messages, "error: "), 2) << messages;
      EXPECT_EQ(count_of(messages, "acted on error: rank 0 on "), 1) << messages;
      EXPECT_EQ(count_of(messages, told), 2) << messages;
      EXPECT_EQ(count_of(messages, ") was killed\n"), 2) << messages;
    }
  }
}

// A launcher that sees a guard die asks all ranks for their end. One that asked before may kill guards first.
TEST(Watchdog, TellsThatItsGuardWasKilledThoughASignalCameWithIt) {
  for (const bool is_ending : {false, true}) {
    const auto [exit_code, messages] = orphan_of([&] {
      guard_rank(make_hint("guarded", 0), {60});
      alarm(60);
      Node node{0, {1000}};
      catch_interrupts(node.clock());
      node.watchdog().set_on_stall([](const std::string& report) { say("acted on " + report); });
      raise(SIGTERM);
      if (is_ending) node.pass({0.1});
      kill(getppid(), SIGKILL);
      wait_forever();  // ticks go on at the same time
    });
    EXPECT_EQ(exit_code, 3) << messages;
    EXPECT_EQ(count_of(messages, "acted on error: rank 0 on "), 1) << messages;
    EXPECT_EQ(count_of(messages, "error: "), is_ending ? 1 : 2) << messages;
  }
}

// Nobody else would end it.
TEST(Watchdog, AProcessWithoutOneDiesWithItsGuard) {
  const auto [status, messages] = orphan_of([] {
    guard_rank(make_hint("guarded", 0), {0});
    alarm(60);
    const Watchdog off{make_hint(unique_job(), 0), {0}};
    kill(getppid(), SIGKILL);
    wait_forever();
  });
  EXPECT_EQ(status, -SIGKILL) << messages;
}

}  // namespace
}  // namespace lockstep::runtime
