// The version of this build.
// Invariant: version.cpp is the only file that is recompiled when the version changes.
// Used by --version and by every result file.
#pragma once

#include <string_view>

namespace lockstep::core {

[[nodiscard]] std::string_view version() noexcept;     ///< "0.1.0"
[[nodiscard]] std::string_view compiler() noexcept;    ///< "GNU 12.2.0"
[[nodiscard]] std::string_view build_type() noexcept;  ///< "Release"
[[nodiscard]] bool is_debug_build() noexcept;          ///< assertions on or optimisation off: not for timing

}  // namespace lockstep::core
