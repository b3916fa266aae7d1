// `reduce_all` within a test's process: its command line, on ranks that are threads or the processes of the test.
// Invariant: as in program.hpp; faults of --inject strike their rank.
// Used by tests/program and tests/mpi.
#pragma once

#include <string>
#include <vector>

#include "core/clock.hpp"
#include "reduce_all/run.hpp"
#include "support/program.hpp"

namespace lockstep::support {

/// Returns the exit code of the calling rank.
inline int run_reduce_all(const runtime::Communicator& world, const reduce_all::CommandLine& line,
                          const runtime::LauncherHint& hint = {}, const core::Clock& clock = core::real_clock()) {
  const runtime::Session session{world, clock};
  runtime::Watchdog watchdog{{}, {}, line.options.drill.get()};
  watchdog.set_rank(world.rank(), world.n_ranks());
  reduce_all::Progress progress{watchdog, line.options.drill.get()};
  return reduce_all::run(session, line, hint, progress);
}

[[nodiscard]] inline RunRank reduce_all_by_rank(const std::vector<std::string>& arguments,
                                                const core::Clock& clock = core::real_clock()) {
  return [arguments, &clock](const runtime::Communicator& world) {
    return run_reduce_all(world, reduce_all::parse_command_line(arguments), {}, clock);
  };
}

/// Runs on threads of one node.
[[nodiscard]] inline Ended reduce_all_on(const std::vector<std::string>& arguments, int n_ranks) {
  return run_ranks(std::vector<int>(static_cast<std::size_t>(n_ranks)), reduce_all_by_rank(arguments));
}

/// The same; all ranks have `clock`, which must outlive it.
[[nodiscard]] inline Program reduce_all_by(const core::Clock& clock) {
  return [&clock](const std::vector<std::string>& arguments, int n_ranks) {
    return run_ranks(std::vector<int>(static_cast<std::size_t>(n_ranks)), reduce_all_by_rank(arguments, clock));
  };
}

}  // namespace lockstep::support
