// One collective call with known inputs and their expected result, for any transport.
// Invariant: the expected result is computed here, element by element in double, without any of the code under test.
// Used by the comm tests over threads and over MPI.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/registry.hpp"

namespace lockstep::support {

/// How to call a plan.
enum class Mode { run, start_wait, start_test };

struct CollectiveCase {
  const comm::Algorithm* algorithm = nullptr;
  comm::Call call;
  bool in_place = false;
  Mode mode = Mode::run;
  int n_calls = 3;  ///< in sequence on one plan, with different inputs for each call
};

[[nodiscard]] std::string describe(const CollectiveCase& which);

/// Collective: makes the plan, runs it and compares every element on this rank; throws std::runtime_error at the first
/// difference.
void check(comm::Transport& transport, const CollectiveCase& which);

}  // namespace lockstep::support
