// All ranks at once send to and receive from others, which loads the links between their GPUs.
// Invariant: all sends and receives of a rank are one group, whose calls do not wait for each other.
// Used by nccl_cuda.cpp; includes NCCL's header, as only files for NCCL do.
#pragma once

#include <memory>

#include "comm/algorithms/nccl_link.hpp"
#include "comm/device_plan.hpp"

namespace lockstep::comm::nccl {

/// DeviceGroup::make_exchange() for the ranks of a communicator, which must outlive it.
[[nodiscard]] std::unique_ptr<DevicePlan> make_exchange(Link& comm, int rank, int n_ranks, core::Bytes bytes,
                                                        int n_neighbours);

}  // namespace lockstep::comm::nccl
