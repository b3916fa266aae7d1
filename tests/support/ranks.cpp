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

void on_ranks(int n_ranks, const std::function<void()>& body) {
  on_ranks(std::vector<int>(static_cast<std::size_t>(n_ranks)), body);
}

}  // namespace lockstep::support
