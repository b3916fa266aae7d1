// `lockstep` within a test's process: its command line, on ranks that are threads.
// Invariant: what a user would see comes back; nothing ends the process.
// Used by tests/ranks.
#pragma once

#include <string>
#include <vector>

#include "core/clock.hpp"

namespace lockstep::support {

/// How the program ended.
struct Ended {
  int exit_code = 0;
  std::string out{};
  std::string err{};

  /// The value after `key` on the line of stdout that begins with it, such as "digest"; empty if there is none.
  [[nodiscard]] std::string line(const std::string& key) const;
};

/// Runs `lockstep ARGUMENTS` on the host; rank r is on node `nodes[r]`, and computes by one thread. All have `clock`.
[[nodiscard]] Ended run_lockstep(const std::vector<std::string>& arguments, const std::vector<int>& nodes = {0},
                                 const core::Clock& clock = core::real_clock());

/// `words`, separated at spaces.
[[nodiscard]] std::vector<std::string> words_of(const std::string& words);

}  // namespace lockstep::support
