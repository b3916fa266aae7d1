// Whether a sanitizer watches: it needs terabytes of address space, and descriptors of its own for each look at an
// object.
// Invariant: true in the preset asan.
// Used by tests that take limits of the process to their end.
#pragma once

namespace lockstep {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

}  // namespace lockstep
