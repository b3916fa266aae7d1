#include "runtime/interrupt.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace lockstep::runtime {
namespace {

// Code made at run time may keep heap memory where the stack pointer points: a handler must not write there.
TEST(Interrupt, IsHandledOnAStackOfItsOwn) {
  const auto run = [] {
    catch_interrupts();
    stack_t stack{};
    sigaltstack(nullptr, &stack);
    bool is_right = (stack.ss_flags & SS_DISABLE) == 0 && stack.ss_size >= 16384;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      is_right = is_right && (action.sa_handler == SIG_IGN || (action.sa_flags & SA_ONSTACK) != 0);
    }
    std::raise(SIGINT);
    std::_Exit(is_right && pending_interrupt() == SIGINT ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

// Raises `first`, and 1.1 s later `second`: then it is another one.
void raise_both(int first, int second) {
  catch_interrupts();
  std::raise(first);
  std::this_thread::sleep_for(std::chrono::milliseconds{1100});
  std::raise(second);
}

TEST(Interrupt, ASecondOneEndsAtOnce) {
  EXPECT_EXIT(raise_both(SIGTERM, SIGTERM), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT((raise_both(SIGTERM, SIGUSR1), std::_Exit(0)), testing::ExitedWithCode(0), "");
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
