// Job scripts judged, and what is found in them.
// Invariant: a script here needs no first line with #!.
// Used by the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "site/script_lint.hpp"

namespace lockstep::site {

inline constexpr Severity error = Severity::error;
inline constexpr Severity warning = Severity::warning;
inline constexpr Severity note = Severity::note;

inline std::vector<Finding> lint(const std::string& text, const Site& site = {.name = "generic", .title = "any"},
                                 const FileExists& exists = {}) {
  JobScript script = read_job_script(text);
  script.has_interpreter = true;  // but for the test of that
  return lint_script(script, site, exists);
}

inline std::string listed(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& one : findings)
    text += std::to_string(one.line) + " " + std::string{name(one.severity)} + " " + one.what + "\n";
  return text;
}

/// Whether one of `findings` is of this line and severity, and says `part`.
inline bool has(const std::vector<Finding>& findings, int line, Severity severity, std::string_view part) {
  return std::ranges::any_of(findings, [&](const Finding& one) {
    const bool says_it = (one.what + " " + one.why + " fix: " + one.fix).find(part) != std::string::npos;
    return one.line == line && one.severity == severity && says_it;
  });
}

struct Case {
  const char* text;
  int line;
  Severity severity;
  const char* part;
};

inline void expect_all(const std::vector<Case>& cases, const Site& site, const std::string& header = "") {
  const int n_before = static_cast<int>(std::ranges::count(header, '\n'));
  for (const Case& one : cases) {
    const auto findings = lint(header + one.text, site);
    EXPECT_TRUE(has(findings, one.line + n_before, one.severity, one.part)) << one.text << listed(findings);
  }
}

}  // namespace lockstep::site
