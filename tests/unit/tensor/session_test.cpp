#include "tensor/session.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace lockstep::tensor {
namespace {

// Each in a process of its own, as Kokkos starts only once in one.
TEST(SessionDeathTest, StartsWithTheThreadsAskedForAndOnlyOnce) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    int n_threads = 0;
    {
      const Session session{2};
      n_threads = session.n_threads();
      EXPECT_THROW(Session{1}, core::Error);
    }
    EXPECT_THROW(Session{1}, core::Error);
    std::exit(testing::Test::HasFailure() ? 100 : n_threads);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(2), "^$");
}

TEST(SessionDeathTest, NeedsAThread) { EXPECT_THROW(Session{0}, core::Error); }

}  // namespace
}  // namespace lockstep::tensor
