#include "io/retry.hpp"

#include <gtest/gtest.h>

namespace lockstep::io {
namespace {

/// Fails `n_failures` times with `error`, then gives 42.
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
  for (const int error : {EIO, ESTALE, EAGAIN, EINTR}) {
    Flaky flaky{2, error};
    EXPECT_EQ(with_retries(flaky), 42);
    EXPECT_EQ(flaky.n_calls, 3);
  }
}

TEST(Retry, GivesUpAfterFiveTimes) {
  Flaky flaky{1000, EIO};
  EXPECT_EQ(with_retries(flaky), -1);
  EXPECT_EQ(flaky.n_calls, 6);
  EXPECT_EQ(errno, EIO);
}

TEST(Retry, DoesNotRepeatWhatCannotSucceed) {
  Flaky flaky{1, ENOENT};
  EXPECT_EQ(with_retries(flaky), -1);
  EXPECT_EQ(flaky.n_calls, 1);
}

TEST(Retry, PausesLongerEachTime) {
  Flaky flaky{5, EIO};
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(with_retries(flaky), 42);
  // Half of 10 + 20 + 40 + 80 + 160 ms is the least that jitter leaves.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds{155});
}

}  // namespace
}  // namespace lockstep::io
