// What a rank waits for while it can do nothing by itself, as a report on a stall names it.
// Invariant: whoever tells of a wait tells of its end.
// Used by the watchdog, and by whatever waits for other ranks while they train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lockstep::runtime {

enum class Wait : std::uint32_t {
  nothing,     ///< computes, reads or writes
  gradients,   ///< of the ranks of its node
  norms,       ///< of these
  parameters,  ///< updated by the ranks of its node
  bucket,      ///< the all-reduce of bucket `number` between nodes
  agreement    ///< of all ranks on a step
};

/// `number` counts from 0, where there are several.
using OnWait = std::function<void(Wait what, std::size_t number)>;

}  // namespace lockstep::runtime
