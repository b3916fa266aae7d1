// Whether bash can read a job script to its end.
// Invariant: nothing of the script is executed (bash -n); where there is no bash, nothing is found.
// Used by lockstep lint.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "site/finding.hpp"
#include "site/job_script.hpp"

namespace lockstep::training::lint {

/// By its first line; without one that names a shell, batch systems take that of the user.
[[nodiscard]] bool is_for_bash(std::string_view text);

/// `text` is that of the file `path`, and `script` what it says. Nothing for scripts of other shells.
[[nodiscard]] std::optional<site::Finding> find_syntax_error(const std::string& path, std::string_view text,
                                                             const site::JobScript& script);

}  // namespace lockstep::training::lint
