// What is found in job scripts, as lines and as JSON.
// Invariant: a line is FILE:LINE: and what compilers print after it, so that editors find the place.
// Used by lockstep lint.
#pragma once

#include <string>
#include <vector>

#include "site/finding.hpp"

namespace lockstep::training::lint {

struct Judged {
  std::string file{};
  std::string site{};
  std::vector<site::Finding> findings{};
};

/// Whether there is an error or a warning.
[[nodiscard]] bool is_clean(const std::vector<Judged>& all) noexcept;

[[nodiscard]] std::string describe(const std::vector<Judged>& all);
/// As share/schemas/lint-1.schema.json has it.
[[nodiscard]] std::string to_json(const std::vector<Judged>& all);

}  // namespace lockstep::training::lint
