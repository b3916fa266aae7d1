#include "runtime/interrupt.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/communicator_threads.hpp"
#include "support/set_clock.hpp"

namespace lockstep::runtime {
namespace {

/// Like a program that a shell has started in the foreground, or that ignores SIGINT and SIGHUP.
void inherit(void (*disposition)(int)) {
  for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, disposition);
}

// Code generated at run time may keep heap memory where the stack pointer points: a handler must not write there.
TEST(Interrupt, IsHandledOnAStackOfItsOwn) {
  const auto run = [] {
    inherit(SIG_DFL);
    catch_interrupts();
    stack_t stack{};
    sigaltstack(nullptr, &stack);
    bool is_right = (stack.ss_flags & SS_DISABLE) == 0 && stack.ss_size >= 16384;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      is_right = is_right && (action.sa_flags & SA_ONSTACK) != 0;
    }
    std::raise(SIGINT);
    std::_Exit(is_right && pending_interrupt() == SIGINT ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST(Interrupt, IsTheOneThatCame) {
  const auto run = [](int signal) {
    inherit(SIG_DFL);
    catch_interrupts();
    std::raise(signal);
    std::_Exit(pending_interrupt() == signal ? 0 : 1);
  };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
    EXPECT_EXIT(run(signal), testing::ExitedWithCode(0), "") << signal_name(signal);
}

// With nohup, and in a shell's `command &`; signals of batch systems are never ignored.
TEST(Interrupt, IsIgnoredWhereItWasFromTheStart) {
  const auto run = [](int signal) {
    inherit(SIG_IGN);
    for (const int other : {SIGTERM, SIGUSR1, SIGUSR2}) std::signal(other, SIG_IGN);
    catch_interrupts();
    std::raise(signal);
    std::_Exit(pending_interrupt());
  };
  for (const int signal : {SIGINT, SIGHUP}) EXPECT_EXIT(run(signal), testing::ExitedWithCode(0), "") << signal;
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2})
    EXPECT_EXIT(run(signal), testing::ExitedWithCode(signal), "") << signal;
}

TEST(Interrupt, OfSeveralRanksIsTheOneThatTellsMost) {
  EXPECT_EQ(describe_signal(SIGUSR2), "signal 12 (SIGUSR2)");
  const auto agreed = [](const std::vector<int>& signals) {
    int all = -1;
    run_as_threads({.nodes = std::vector<int>(signals.size())}, [&](Communicator& world) {
      const int one = agree_on_interrupt(world, signals[static_cast<std::size_t>(world.rank())]);
      if (world.rank() == 0) all = one;
    });
    return all;
  };
  EXPECT_EQ(agreed({0, 0, 0}), 0);
  EXPECT_EQ(agreed({0, SIGUSR2, 0}), SIGUSR2);
  EXPECT_EQ(agreed({SIGTERM, SIGUSR1}), SIGTERM);
  EXPECT_EQ(agreed({SIGTERM, SIGHUP, SIGTERM}), SIGHUP);
  EXPECT_EQ(agreed({SIGINT, SIGHUP}), SIGINT);
}

// Raises `first`, and `later_s` later `second`: after a second it counts as another one.
void raise_both(int first, int second, double later_s = 1.1) {
  static const support::SetClock clock;
  inherit(SIG_DFL);
  catch_interrupts(clock);
  std::raise(first);
  clock.advance({later_s});
  std::raise(second);
}

TEST(Interrupt, ASecondOneEndsAtOnce) {
  EXPECT_EXIT(raise_both(SIGTERM, SIGTERM), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT((raise_both(SIGTERM, SIGUSR1), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

TEST(Interrupt, WithinASecondIsTheSameOne) {
  EXPECT_EXIT((raise_both(SIGTERM, SIGTERM, 0.9), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

TEST(Interrupt, ASecondIsByTheRealClock) {
  const auto run = [] {
    catch_interrupts();
    std::raise(SIGTERM);
    std::raise(SIGTERM);
    core::real_clock().sleep({1.1});
    std::raise(SIGTERM);
  };
  EXPECT_EXIT(run(), testing::KilledBySignal(SIGTERM), "");
}

TEST(HoldRepeats, AreForWhatTheFirstAskedFor) {
  const auto run = [](int second) {
    {
      const HoldRepeats hold;
      raise_both(SIGTERM, second);
    }
    if (second != SIGINT) std::raise(second);  // no longer held
    std::_Exit(0);
  };
  EXPECT_EXIT(run(SIGINT), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(run(SIGTERM), testing::KilledBySignal(SIGTERM), "");
  const auto hold = [] {
    const HoldRepeats one;
    raise_both(SIGTERM, SIGTERM);
    std::_Exit(pending_interrupt() == SIGTERM ? 0 : 1);
  };
  EXPECT_EXIT(hold(), testing::ExitedWithCode(0), "");
}

bool is_blocked(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

TEST(NoInterrupts, AreForThreadsBegunMeanwhile) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    ASSERT_FALSE(is_blocked(signal)) << signal;
    bool is_blocked_there = false;
    {
      const NoInterrupts none;
      std::thread{[&] { is_blocked_there = is_blocked(signal); }}.join();
    }
    EXPECT_TRUE(is_blocked_there) << signal;
    EXPECT_FALSE(is_blocked(signal)) << signal;
  }
}

}  // namespace
}  // namespace lockstep::runtime
