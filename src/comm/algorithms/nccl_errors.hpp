// Errors and versions of NCCL in words of ours.
// Invariant: what keeps it from connecting the ranks, before any work, is the user's to mend (usage); what comes later
// is not (system).
// Used by nccl_cuda.cpp and its neighbours; includes NCCL's header, as only files for NCCL do.
#pragma once

#include <nccl.h>

#include <string>
#include <string_view>

namespace lockstep::comm::nccl {

/// Throws core::Error (system) unless it is a success, or on its way to one. `comm` may be null.
void check(ncclResult_t result, ncclComm_t comm, std::string_view what);

/// Of what connects the ranks: throws core::Error (usage) unless it is a success.
void check_connected(ncclResult_t result, std::string_view what);

/// "2.28.9" of 22809.
[[nodiscard]] std::string to_text(int version);

}  // namespace lockstep::comm::nccl
