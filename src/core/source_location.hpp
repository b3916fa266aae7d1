// Where in the source a check is.
// Invariant: as a default argument, a default-constructed value names the caller's file, line and function.
// Used by core/error.hpp and by the MPI checks of runtime/.
#pragma once

namespace lockstep::core {

/// A substitute for `std::source_location`, which Clang 14 (and so clang-tidy 14) lacks on libstdc++ 12.
struct SourceLocation {
  const char* file = "";
  int line = 0;
  const char* function = "";

  static constexpr SourceLocation current(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                                          const char* function = __builtin_FUNCTION()) noexcept {
    return {file, line, function};
  }
};

}  // namespace lockstep::core
