#include "nn/host/kokkos_session.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>

#include "core/error.hpp"
#include "nn/host/parallel.hpp"

namespace lockstep::nn::host {
namespace {

// Each runs in its own process, because Kokkos starts only once per process.
TEST(KokkosSessionDeathTest, StartsWithTheThreadsAskedForAndOnlyOnce) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    int n_threads = 0;
    {
      const KokkosSession session{2};
      n_threads = session.n_threads();
      EXPECT_THROW(KokkosSession{1}, core::Error);
    }
    EXPECT_THROW(KokkosSession{1}, core::Error);
    std::exit(testing::Test::HasFailure() ? 100 : n_threads);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(2), "^$");
}

// oneDNN's code keeps heap memory where the stack pointer points, and only the main thread has a stack for handlers.
TEST(KokkosSessionDeathTest, SignalsAreForTheMainThread) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    const KokkosSession session{2};
    std::atomic<int> n_blocking{0};
    for_parts(2, 1, [&](std::size_t, std::size_t) {
      sigset_t blocked;
      pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      if (sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGUSR1) == 1) ++n_blocking;
    });
    std::_Exit(n_blocking);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(1), "^$");
}

TEST(KokkosSessionDeathTest, NeedsAThread) { EXPECT_THROW(KokkosSession{0}, core::Error); }

}  // namespace
}  // namespace lockstep::nn::host
