// What NCCL does in our streams: the collectives, and an exchange with neighbours.
// Invariant: a call names all memory it touches, because a recorder judges the order of operations by that.
// Used by group.cpp.
#pragma once

#include <memory>
#include <optional>

#include "comm/device_plan.hpp"
#include "comm/nccl/communicator.hpp"

namespace lockstep::comm::nccl {

/// Nothing if NCCL does not support the type.
[[nodiscard]] std::optional<ncclDataType_t> type_of(core::DType dtype);

/// DeviceGroup::make_plan() for the ranks of a communicator. Started calls run in `own`; both must outlive it.
[[nodiscard]] std::unique_ptr<DevicePlan> make_collective(Link& comm, runtime::Stream& own, const Call& call, int rank,
                                                          int n_ranks);

/// DeviceGroup::make_exchange() for the ranks of a communicator, which must outlive it.
[[nodiscard]] std::unique_ptr<DevicePlan> make_exchange(Link& comm, int rank, int n_ranks, core::Bytes bytes,
                                                        int n_neighbours);

}  // namespace lockstep::comm::nccl
