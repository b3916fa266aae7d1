#include "support/ranks.hpp"

#include <exception>

namespace lockstep::support {
namespace {

thread_local const runtime::Session* current_session = nullptr;

}  // namespace

const runtime::Session& session() { return *current_session; }

void on_ranks(const std::vector<int>& nodes, const std::function<void()>& body) {
  try {
    // Sanitizers and busy machines are slow; a deadlock is found at once, whatever the patience.
    runtime::run_as_threads({.nodes = nodes, .patience = {300}}, [&](runtime::Communicator& world) {
      const runtime::Session session{world};
      current_session = &session;
      body();
    });
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

void on_all_rank_counts(const std::function<void()>& body) {
  for (const std::size_t n_ranks : {1, 2, 3, 4}) {
    SCOPED_TRACE(testing::Message() << n_ranks << " ranks");
    on_ranks(std::vector<int>(n_ranks), body);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace lockstep::support
