// `reduce_all` within a test's process: its command line, on ranks that are threads of one node.
// Invariant: as in support/program.hpp; faults of --inject strike their rank.
// Used by tests/program.
#pragma once

#include <string>
#include <vector>

#include "reduce_all/run.hpp"
#include "support/program.hpp"

namespace lockstep::reduce_all {

/// The exit code of the rank that the calling thread is.
inline int run_rank(const runtime::Communicator& world, const CommandLine& line) {
  const runtime::Session session{world};
  runtime::Watchdog watchdog{{}, {}, line.options.drill.get()};
  watchdog.set_rank(world.rank(), world.n_ranks());
  Progress progress{watchdog, line.options.drill.get()};
  return run(session, line, {}, progress);
}

inline support::Ended reduce_all_on(const std::vector<std::string>& words, int n_ranks) {
  return support::run_ranks(
      std::vector<int>(static_cast<std::size_t>(n_ranks)),
      [&](const runtime::Communicator& world) { return run_rank(world, parse_command_line(words)); });
}

}  // namespace lockstep::reduce_all
