// What no algorithm can beat on this machine: all ranks at once read their input and write their output.
// Invariant: measured by the same loop, in the same rounds and on the same kind of buffers as the algorithms.
// Used by the sweep (two more contenders a size) and the results (percentage of the limit).
#pragma once

#include <memory>

#include "comm/collective.hpp"
#include "comm/plan.hpp"
#include "core/units.hpp"

namespace lockstep::reduce_all {

/// How the probe copies; the faster one counts.
enum class CopyKind { cached, streaming };

/// A plan without communication: copies input to output, both of the call's whole size.
[[nodiscard]] std::unique_ptr<comm::Plan> make_copy_plan(CopyKind kind);

/// Limit as algbw in GB/s when copying `bytes` takes `copy_time` on all ranks at once. all_reduce reads and writes the
/// whole vector on every rank; reduce_scatter and all_gather read or write only 1/P of it: (1 + 1/P) / 2 of that time.
[[nodiscard]] double limit_GBps(comm::Collective collective, core::Bytes bytes, core::Seconds copy_time, int n_ranks);

}  // namespace lockstep::reduce_all
