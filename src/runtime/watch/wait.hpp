// What a rank waits for while it can do nothing else, as a stall report names it.
// Invariant: code that reports the begin of a wait also reports its end.
// Used by the watchdog, and by code that waits for other ranks during training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lockstep::runtime {

enum class Wait : std::uint32_t {
  nothing,     ///< computes, reads or writes
  gradients,   ///< of the ranks of its node
  norms,       ///< of the ranks of its node, or of other nodes
  parameters,  ///< updated by the ranks of its node, or by other nodes
  bucket,      ///< the sum of bucket `number` between nodes
  agreement    ///< of all ranks on a step
};

/// `number` counts from 0, if there are several.
using OnWait = std::function<void(Wait what, std::size_t number)>;

}  // namespace lockstep::runtime
