// Everything that can be found wrong before the first measurement.
// Invariant: each check gives every rank an answer without hanging; it throws usage errors.
// Used by run, which lets the ranks agree on the first complaint.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/collective.hpp"
#include "comm/device_plan.hpp"
#include "core/error.hpp"
#include "reduce_all/options.hpp"
#include "runtime/launcher.hpp"
#include "runtime/topology.hpp"

namespace lockstep::reduce_all {

/// Checks the world against the request: --expect-ranks, --nproc, ranks named by --inject.
void check_world(const Options& options, std::span<const comm::Call> calls, int n_ranks);

/// Checks that buffers for vectors of up to `largest` and kept times of all ranks of this rank's node fit into its
/// memory.
void check_memory(const Options& options, core::Bytes largest, const runtime::Topology& topology, int rank,
                  std::size_t n_participants);

/// Checks that the buffers fit into the GPU of this rank, perhaps with all ranks of its node, besides twice
/// `exchanged`.
void check_device_memory(const Options& options, core::Bytes largest, core::Bytes exchanged,
                         const runtime::DeviceChoice& device, int n_local_ranks);

/// At rank 0: reasons to doubt the numbers: placement, a debug build, sanitizers.
[[nodiscard]] std::vector<std::string> find_warnings(const runtime::Topology& topology,
                                                     const runtime::DeviceChoice& device,
                                                     const comm::AllConnections& connections);

/// The reference of the table's percentages; `reads_from_others`: reading from other cores also counts, for ranks of
/// one node.
[[nodiscard]] std::string describe_limit(const Options& options, const runtime::Topology& topology,
                                         bool reads_from_others);
/// The same for vectors in GPU memory; `has_links`: several GPUs, whose links carry exchanges between ranks.
[[nodiscard]] std::string describe_limit_of_devices(const Options& options, const runtime::Topology& topology,
                                                    bool has_links);

}  // namespace lockstep::reduce_all
