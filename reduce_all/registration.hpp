// What of --register and --graph is in effect: whether NCCL knows the vectors before its calls, and these are replayed.
// Invariant: all of NCCL's rows of a run have it alike, as far as the one goes that has least.
// Used by run.
#pragma once

#include <vector>

#include "reduce_all/sweep.hpp"

namespace lockstep::reduce_all {

/// Throws core::Error (usage) if this program is not built for what is asked for.
void check_registration(const Options& options, const runtime::DeviceChoice& device);

/// Collective: the groups of libraries of the devices that take part, made if need be.
[[nodiscard]] std::vector<comm::DeviceGroup*> libraries_of(const Job& job);

/// Collective: what is in effect. Where that is less than was asked for, rank 0 says why.
[[nodiscard]] comm::Registration find_registration(const Job& job);
/// Collective: likewise, whether calls of any row are recorded and replayed.
[[nodiscard]] bool find_graph(const Job& job);

}  // namespace lockstep::reduce_all
