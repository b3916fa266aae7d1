#include "io/retry.hpp"

#include <gtest/gtest.h>

#include "core/timer.hpp"
#include "support/set_clock.hpp"

namespace lockstep::io {
namespace {

/// Fails `n_failures` times with `error`, then returns 42.
struct Flaky {
  int n_failures;
  int error;
  int n_calls = 0;

  int operator()() {
    if (++n_calls > n_failures) return 42;
    errno = error;
    return -1;
  }
};

TEST(Retry, GetsOverPassingErrors) {
  const support::SetClock clock;
  for (const int error : {EIO, ESTALE, EAGAIN, EINTR}) {
    Flaky flaky{2, error};
    EXPECT_EQ(with_retries(flaky, clock), 42);
    EXPECT_EQ(flaky.n_calls, 3);
  }
}

TEST(Retry, GivesUpAfterFiveTimes) {
  const support::SetClock clock;
  Flaky flaky{1000, EIO};
  EXPECT_EQ(with_retries(flaky, clock), -1);
  EXPECT_EQ(flaky.n_calls, 6);
  EXPECT_EQ(errno, EIO);
}

TEST(Retry, DoesNotRepeatWhatCannotSucceed) {
  const support::SetClock clock;
  Flaky flaky{1, ENOENT};
  EXPECT_EQ(with_retries(flaky, clock), -1);
  EXPECT_EQ(flaky.n_calls, 1);
  EXPECT_TRUE(clock.pauses().empty());
}

TEST(Retry, PausesLongerEachTime) {
  const support::SetClock clock;
  Flaky flaky{5, EIO};
  EXPECT_EQ(with_retries(flaky, clock), 42);
  ASSERT_EQ(clock.pauses().size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    const double middle_s = 0.01 * static_cast<double>(1 << i);
    EXPECT_GE(clock.pauses()[i], 0.5 * middle_s) << i;
    EXPECT_LE(clock.pauses()[i], 1.5 * middle_s) << i;
  }
}

TEST(Retry, RanksThatFailTogetherDoNotReturnTogether) {
  const support::SetClock clock;
  for (int rank = 0; rank < 2; ++rank) {
    Flaky flaky{1, EIO};
    EXPECT_EQ(with_retries(flaky, clock), 42);
  }
  EXPECT_NE(clock.pauses()[0], clock.pauses()[1]);
}

TEST(Retry, PausesByTheRealClock) {
  const core::Stopwatch watch;
  Flaky flaky{2, EIO};
  EXPECT_EQ(with_retries(flaky), 42);
  EXPECT_GE(watch.elapsed().value, 0.015);
}

}  // namespace
}  // namespace lockstep::io
