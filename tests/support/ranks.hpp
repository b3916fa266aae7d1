// Tests on several ranks that are threads of the test's own process.
// Invariant: a failure, a deadlock or an exception of any rank fails the test; no launcher, no MPI.
// Used by tests/ranks.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "runtime/communicator_threads.hpp"
#include "runtime/session.hpp"

namespace lockstep::support {

/// The session of the rank that runs in the calling thread.
[[nodiscard]] const runtime::Session& session();

[[nodiscard]] inline const runtime::Communicator& world() { return session().world(); }

/// Runs `body` on every rank; rank r is on node `nodes[r]`. A rank that throws fails the test.
void on_ranks(const std::vector<int>& nodes, const std::function<void()>& body);
/// Runs `body` on 1, 2, 3 and 4 ranks of one node, one after another: odd sizes are not optional.
void on_all_rank_counts(const std::function<void()>& body);

}  // namespace lockstep::support

/// RANKS_TEST(Suite, Name) { body }: the body runs on 1, 2, 3 and 4 ranks, and finds its rank by support::world().
#define RANKS_TEST(Suite, Name)                                                \
  static void Suite##_##Name##_on_rank();                                      \
  TEST(Suite, Name) {                                                          \
    lockstep::support::on_all_rank_counts([] { Suite##_##Name##_on_rank(); }); \
  }                                                                            \
  static void Suite##_##Name##_on_rank()

/// The same for a suite with a parameter, which the body knows as `param`.
#define RANKS_TEST_P(Suite, Name)                                                            \
  static void Suite##_##Name##_on_rank(const Suite::ParamType& param);                       \
  TEST_P(Suite, Name) {                                                                      \
    lockstep::support::on_all_rank_counts([this] { Suite##_##Name##_on_rank(GetParam()); }); \
  }                                                                                          \
  static void Suite##_##Name##_on_rank([[maybe_unused]] const Suite::ParamType& param)

/// The same with a fixture for each rank, which is a plain class.
#define RANKS_TEST_F(Fixture, Name)                                                     \
  struct Fixture##_##Name##_on_rank : Fixture {                                         \
    void body();                                                                        \
  };                                                                                    \
  TEST(Fixture##_, Name) {                                                              \
    lockstep::support::on_all_rank_counts([] { Fixture##_##Name##_on_rank{}.body(); }); \
  }                                                                                     \
  void Fixture##_##Name##_on_rank::body()
