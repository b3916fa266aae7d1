// What bash and ShellCheck say of a job script: whether bash can read it to its end, and slips of the shell.
// Invariant: nothing of the script is executed (bash -n); where there is no bash or ShellCheck, it finds nothing.
// Used by lockstep lint.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "site/finding.hpp"
#include "site/job_script.hpp"

namespace lockstep::training::lint {

/// By its first line; without one that names a shell, batch systems take that of the user.
[[nodiscard]] bool is_for_bash(std::string_view text);

/// `text` is that of the file `path`, and `script` what it says. Nothing for scripts of other shells.
[[nodiscard]] std::optional<site::Finding> find_syntax_error(const std::string& path, std::string_view text,
                                                             const site::JobScript& script);

struct ShellCheck {
  std::string state = "off";              ///< "ran", "late" (ended after 10 s), "missing", "failed"; "off": not asked
  std::vector<site::Finding> findings{};  ///< its errors, and its warnings as notes
};

/// Without what `own`, the findings of lint, already have of a line, and without errors of syntax if lint has told that
/// bash cannot read the script.
[[nodiscard]] ShellCheck ask_shellcheck(const std::string& path, const std::vector<site::Finding>& own,
                                        bool is_unreadable);

}  // namespace lockstep::training::lint
