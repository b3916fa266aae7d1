// The effect of --register and --graph: whether vectors are registered with NCCL before its calls, and calls are
// replayed.
// Invariant: the same for all NCCL rows of a run, limited by the row that supports least.
// Used by run.
#pragma once

#include <vector>

#include "reduce_all/sweep.hpp"

namespace lockstep::reduce_all {

/// Throws core::Error (usage) if this program is not built for the request.
void check_registration(const Options& options, const runtime::DeviceChoice& device);

/// Collective: the groups of device libraries that take part, made if necessary.
[[nodiscard]] std::vector<comm::DeviceGroup*> libraries_of(const Job& job);

/// Collective: the registration in effect. If that is less than requested, rank 0 says why.
[[nodiscard]] comm::Registration find_registration(const Job& job);
/// Collective: likewise, whether calls of any row are recorded and replayed.
[[nodiscard]] bool find_graph(const Job& job);

}  // namespace lockstep::reduce_all
