// Whether a sanitizer watches. The address sanitizer needs terabytes of address space, and descriptors of its own for
// each look at an object; all sanitizers are slow.
// Invariant: is_sanitized is true in the preset asan, is_slow also in tsan.
// Used by tests that reach limits of the process, and by those that then try fewer cases.
#pragma once

namespace lockstep {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

#ifdef __SANITIZE_THREAD__
inline constexpr bool is_slow = true;
#else
inline constexpr bool is_slow = is_sanitized;
#endif

/// Divides the number of draws that take long.
inline constexpr int slow_divisor = is_slow ? 10 : 1;

}  // namespace lockstep
