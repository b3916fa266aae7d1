// Slips in the variables that steer NCCL, libfabric, UCX, MPI and the launchers: misspelt names, values that mean
// nothing, settings that contradict one another.
// Invariant: pure; a name that is not known is at most noted, unless it is near one that is.
// Used by lockstep doctor for a process, and by script_lint for what a job script sets.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "site/finding.hpp"

namespace lockstep::site {

struct Variable {
  std::string name{};
  std::string value{};
  int line = 0;  ///< where it was set, for Finding::line; 0: not in a file
};

/// The network between nodes, where the caller knows it.
enum class Fabric { unknown, slingshot, infiniband };

/// In the order of `variables`; contradictions after them. Of variables of one name the last counts. Values with a $,
/// which a shell would still have to fill in, are not judged. All other programs' variables are passed over.
[[nodiscard]] std::vector<Finding> lint_environment(std::span<const Variable> variables,
                                                    Fabric fabric = Fabric::unknown);

}  // namespace lockstep::site
