// Registration of memory with NCCL, by version.
// Invariant: memory is deregistered while the communicator still exists.
// Used by nccl_cuda.cpp; includes NCCL's header, as only files for NCCL do.
#pragma once

#include <nccl.h>

#include "comm/device_plan.hpp"

namespace lockstep::comm::nccl {

/// Collective for Registration::symmetric. Null if NCCL does not support it on this machine.
[[nodiscard]] void* register_memory(ncclComm_t comm, runtime::DeviceSpan<std::byte> memory, Registration how);
/// Local. `handle`: the result of register_memory() with the same `how`.
void deregister(ncclComm_t comm, void* handle, Registration how) noexcept;

}  // namespace lockstep::comm::nccl
