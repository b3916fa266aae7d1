// The interface of each algorithm's file to the registry: how to plan it and what it costs.
// Invariant: one pair of declarations per row of the registry; nothing else is public.
// Used by registry.cpp, and by algorithms built from others.
#pragma once

#include <memory>
#include <span>

#include "comm/registry.hpp"
#include "comm/schedule.hpp"

namespace lockstep::comm {

/// Writes the schedule of one rank.
using WriteSchedule = Schedule (*)(const Setting& setting);

/// Collective: a plan for the schedule that `write` gives this rank.
template <WriteSchedule write>
std::unique_ptr<Plan> make_scheduled(Transport& transport, const Call& call) {
  return make_scheduled_plan(transport, call, write({transport.rank(), transport.n_ranks(), call}));
}

namespace ring {
Schedule all_reduce(const Setting& setting);
Schedule reduce_scatter(const Setting& setting);
Schedule all_gather(const Setting& setting);
Cost cost(const Call& call, std::span<const int> nodes);
}  // namespace ring

namespace recursive_doubling {
Schedule all_reduce(const Setting& setting);
Cost cost(const Call& call, std::span<const int> nodes);
}  // namespace recursive_doubling

namespace rabenseifner {
Schedule all_reduce(const Setting& setting);
Cost cost(const Call& call, std::span<const int> nodes);
}  // namespace rabenseifner

namespace recursive_halving {
Schedule reduce_scatter(const Setting& setting);
Schedule all_gather(const Setting& setting);
Cost cost(const Call& call, std::span<const int> nodes);
}  // namespace recursive_halving

namespace tree {
Schedule all_reduce(const Setting& setting);
Cost cost(const Call& call, std::span<const int> nodes);
}  // namespace tree

namespace shm {
std::unique_ptr<Plan> make(Transport& transport, const Call& call);
Cost cost(const Call& call, std::span<const int> nodes);
}  // namespace shm

namespace hierarchical {
std::unique_ptr<Plan> make(Transport& transport, const Call& call);
Cost cost(const Call& call, std::span<const int> nodes);
}  // namespace hierarchical

namespace mpi_native {
std::unique_ptr<Plan> make(Transport& transport, const Call& call);
std::unique_ptr<DeviceGroup> make_for_devices(const Algorithm& row, Transport& transport);
std::optional<std::string> why_not_for_devices(const Call& call, const Transport& transport);
/// Whether the MPI library reports that it is GPU-aware. After MPI_Init; mpi_takes_gpus.cpp.
bool takes_gpus();
}  // namespace mpi_native

namespace staged {
std::unique_ptr<DeviceGroup> make(const Algorithm& row, Transport& transport);
}  // namespace staged

/// In nccl/group.cpp or nccl/no_nccl.cpp.
namespace nccl {
std::unique_ptr<DeviceGroup> make(const Algorithm& row, Transport& transport);
std::optional<std::string> why_not(const Call& call, const Transport& transport);
/// For switches that reduce, and for those between nodes.
std::optional<std::string> why_not_by_switches(const Call& call, const Transport& transport);
std::optional<std::string> why_not_by_switches_of_a_node(const Call& call, const Transport& transport);
std::optional<std::string> why_not_by_trees_of_switches(const Call& call, const Transport& transport);
}  // namespace nccl

}  // namespace lockstep::comm
