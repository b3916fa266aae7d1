#include "nn/host/kokkos_session.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace lockstep::nn::host {
namespace {

// Each in a process of its own, as Kokkos starts only once in one.
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

TEST(KokkosSessionDeathTest, NeedsAThread) { EXPECT_THROW(KokkosSession{0}, core::Error); }

}  // namespace
}  // namespace lockstep::nn::host
