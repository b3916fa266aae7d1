// What NCCL is told of memory, by versions that can be told.
// Invariant: what is told is taken back with the communicator still there.
// Used by nccl_cuda.cpp; includes NCCL's header, as only files for NCCL do.
#pragma once

#include <nccl.h>

#include "comm/device_plan.hpp"

namespace lockstep::comm::nccl {

/// Collective for Registration::symmetric. Null: NCCL does not on this machine.
[[nodiscard]] void* register_memory(ncclComm_t comm, runtime::DeviceSpan<std::byte> memory, Registration how);
/// Local. `handle`: of register_memory() with the same `how`.
void deregister(ncclComm_t comm, void* handle, Registration how) noexcept;

}  // namespace lockstep::comm::nccl
