// The texts that need no MPI: --help, --version, --list.
// Invariant: every flag of the parser is in the help; every algorithm of the registry is in the list.
// Used by main() and, under a launcher, by run.
#pragma once

#include <string>

#include "reduce_all/options.hpp"

namespace lockstep::reduce_all {

[[nodiscard]] std::string help_text();
[[nodiscard]] std::string version_text();
[[nodiscard]] std::string list_text();

/// The text of `task`; empty if it has none.
[[nodiscard]] std::string text_for(Task task);

}  // namespace lockstep::reduce_all
