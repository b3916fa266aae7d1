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

/// The session of the rank that the calling thread is.
[[nodiscard]] const runtime::Session& session();

[[nodiscard]] inline const runtime::Communicator& world() { return session().world(); }

/// Runs `body` on every rank; rank r is on node `nodes[r]`. A rank that throws fails the test.
void on_ranks(const std::vector<int>& nodes, const std::function<void()>& body);
/// On `n_ranks` ranks of one node.
void on_ranks(int n_ranks, const std::function<void()>& body);

}  // namespace lockstep::support

/// RANKS_TEST(Suite, Name) { body }: a test whose body runs on 1, 2, 3 and 4 ranks; it finds its rank by support::world().
#define RANKS_TEST(Suite, Name)                                       \
  static void Suite##_##Name##_on_rank();                             \
  TEST(Suite, Name) {                                                 \
    for (const int n_ranks : {1, 2, 3, 4}) {                          \
      SCOPED_TRACE(testing::Message() << n_ranks << " ranks");        \
      lockstep::support::on_ranks(n_ranks, Suite##_##Name##_on_rank); \
    }                                                                 \
  }                                                                   \
  static void Suite##_##Name##_on_rank()
