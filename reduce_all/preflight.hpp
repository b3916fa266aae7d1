// Everything that can be known to be wrong before the first measurement.
// Invariant: each check gives every rank an answer without hanging; what it throws is a usage error.
// Used by run, which lets the ranks agree on the first complaint.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/collective.hpp"
#include "comm/connection.hpp"
#include "core/error.hpp"
#include "reduce_all/options.hpp"
#include "runtime/launcher.hpp"
#include "runtime/topology.hpp"

namespace lockstep::reduce_all {

/// Why the world is not what the user asked for: --expect-ranks, --nproc, ranks named by --inject.
void check_world(const Options& options, std::span<const comm::Call> calls, int n_ranks);

/// Whether the buffers, for vectors of up to `largest`, and kept times of all ranks of this rank's node fit its memory.
void check_memory(const Options& options, core::Bytes largest, const runtime::Topology& topology, int rank,
                  std::size_t n_participants);

/// Whether the buffers fit the GPU that this rank has, perhaps with all ranks of its node, and beside them twice
/// `exchanged`.
void check_device_memory(const Options& options, core::Bytes largest, core::Bytes exchanged,
                         const runtime::DeviceChoice& device, int n_local_ranks);

/// At rank 0: what makes the numbers doubtful: placement, a debug build, sanitizers.
[[nodiscard]] std::vector<std::string> find_warnings(const runtime::Topology& topology,
                                                     const runtime::DeviceChoice& device,
                                                     const comm::AllConnections& connections);

/// What the percentages of the table refer to; `reads_from_others`: what ranks of one node read from other cores too.
[[nodiscard]] std::string describe_limit(const Options& options, const runtime::Topology& topology,
                                         bool reads_from_others);
/// The same where vectors are in memory of GPUs; `has_links`: of several, over whose links ranks exchange what they
/// need.
[[nodiscard]] std::string describe_limit_of_devices(const Options& options, const runtime::Topology& topology,
                                                    bool has_links);

}  // namespace lockstep::reduce_all
