// memcpy for spans that may be empty, and then null.
// Invariant: no overlap.
// Used by the shared-memory plans.
#pragma once

#include <cstddef>
#include <cstring>

namespace lockstep::comm {

inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t n_bytes) noexcept {
  if (n_bytes != 0) std::memcpy(to, from, n_bytes);
}

}  // namespace lockstep::comm
