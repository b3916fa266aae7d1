// Errors and versions of NCCL in our words.
// Invariant: an error while connecting the ranks, before any work, is the user's to fix (usage); a later one is not
// (system).
// Used by nccl_cuda.cpp and its neighbours; includes NCCL's header, as only files for NCCL do.
#pragma once

#include <nccl.h>

#include <string>
#include <string_view>

namespace lockstep::comm::nccl {

/// Throws core::Error (system) unless the result is a success or still in progress. `comm` may be null.
void check(ncclResult_t result, ncclComm_t comm, std::string_view what);

/// For calls that connect the ranks: throws core::Error (usage) unless the result is a success.
void check_connected(ncclResult_t result, std::string_view what);

/// "2.28.9" of 22809.
[[nodiscard]] std::string to_text(int version);

}  // namespace lockstep::comm::nccl
