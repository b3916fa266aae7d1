// What a rank keeps in memory by a strategy, in elements.
// Invariant: of the rank that keeps most.
// Used by forecasts of memory, for hosts and devices.
#pragma once

#include <cstddef>

namespace lockstep::parallel {

struct KeptElements {
  std::size_t parameters = 0;  ///< in float32; on hosts all ranks of the node together
  std::size_t pool = 0;        ///< of these, the places in which units take turns
  std::size_t gradients = 0;
  std::size_t parts = 0;    ///< of units' parameters and gradients; those that it owns
  std::size_t updated = 0;  ///< it has this many of each state of the optimizer

  bool operator==(const KeptElements&) const = default;
};

}  // namespace lockstep::parallel
