// The links of GPUs, with each other and with their hosts, all of them used at once.
// Invariant: the measured rates are those of any program, with plain copies and NCCL messages.
// Used by run (header), the sweep (limit) and the checks of memory.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "comm/collective.hpp"
#include "core/units.hpp"
#include "runtime/communicator.hpp"
#include "runtime/gpu_choice.hpp"
#include "runtime/topology.hpp"

namespace lockstep::reduce_all {

/// Whether links between these GPUs may be a limit that an exchange with neighbours measures: several ranks that share
/// no GPU, all on one node, or each on its own node. If nodes have several each, a ring crosses nodes by one network
/// card at a time, but NCCL uses all of them.
[[nodiscard]] bool may_have_links(const runtime::DeviceChoice& device, const runtime::Topology& topology);

/// Copies between a GPU and pinned memory of its host, on the slowest rank.
struct HostLink {
  double to_gpu_GBps = 0;
  double from_gpu_GBps = 0;
  int slowest_to_gpu = 0;  ///< that rank
  int slowest_from_gpu = 0;
};

/// Collective, if a GPU is in use: all ranks at once copy 64 MiB, one direction at a time; for rank 0 only. Nothing on
/// all ranks if one lacks memory for that.
[[nodiscard]] std::optional<HostLink> measure_host_link(const runtime::Communicator& world);

/// "54.9 GB/s to the GPU, 53.2 back (slowest: rank 3)".
[[nodiscard]] std::string describe_host_link(const HostLink& link, std::size_t n_ranks);

}  // namespace lockstep::reduce_all
