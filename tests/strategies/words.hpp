// The strategies of a host, by their words: tests here hold for each of them.
// Invariant: a strategy that is added is tested, with no change of a test.
// Used by tests/strategies.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/flags.hpp"
#include "parallel/strategy.hpp"

namespace lockstep::support {

[[nodiscard]] inline const std::vector<std::string>& strategy_words() {
  static const std::vector<std::string> words = core::names_of(parallel::strategies_on(false));
  return words;
}

/// Whether `strategy` refuses networks of tables whose touched rows are summed: each node would keep them whole.
[[nodiscard]] inline bool refuses_tables(const std::string& strategy) {
  const auto& all = parallel::strategies_on(false);
  const auto at = std::ranges::find(strategy_words(), strategy) - strategy_words().begin();
  return parallel::divides_parameters(all[static_cast<std::size_t>(at)]);
}

}  // namespace lockstep::support
