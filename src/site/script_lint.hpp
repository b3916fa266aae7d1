// What keeps a job script from doing what it says: directives, limits of the site, launches, slips of the shell.
// Invariant: pure but for `exists`; nothing is executed. A script with errors or warnings is not clean, notes are.
// Used by lockstep lint.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "site/finding.hpp"
#include "site/job_script.hpp"
#include "site/sites.hpp"

namespace lockstep::site {

/// Whether there is a file of this name, relative to the script's folder; may be empty: then no file is looked for.
using FileExists = std::function<bool(const std::string& name)>;

/// By line.
[[nodiscard]] std::vector<Finding> lint_script(const JobScript& script, const Site& site, const FileExists& exists);

}  // namespace lockstep::site
