// share/sites.toml: what clusters document about jobs.
// Invariant: an unknown key is refused, as a limit that is not read would pass in silence.
// Used by lockstep lint.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "site/sites.hpp"

namespace lockstep::training::lint {

/// LOCKSTEP_SITES if set, else the file of the installation, else that of the source tree.
[[nodiscard]] std::string find_site_file();

/// With "generic", which knows no limits, whether the file has it or not.
/// Throws core::Error (usage) naming `file` and line.
[[nodiscard]] std::vector<site::Site> read_sites(std::string_view text, const std::string& file);

}  // namespace lockstep::training::lint
