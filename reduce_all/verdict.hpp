// The result in two to four sentences, for a reader who does not want to read the table.
// Invariant: every figure comes from the rows; nothing is claimed that they do not show.
// Used by --verdict.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reduce_all/result.hpp"

namespace lockstep::reduce_all {

/// Facts that the rows do not contain.
struct VerdictContext {
  int n_ranks = 1;
  int n_nodes = 1;
  std::size_t n_warnings = 0;
  bool is_complete = true;  ///< all requested sizes are among the rows
};

/// Sentences about the first type and op of `rows`; all rows count for wrong elements.
[[nodiscard]] std::vector<std::string> verdict(std::span<const Row> rows, const VerdictContext& context);

}  // namespace lockstep::reduce_all
