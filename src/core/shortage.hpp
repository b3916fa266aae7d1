// Errors of the system that say nothing about a file: this process, its node or a disk has run out of something.
// Invariant: they are never damage or wrong usage, but ExitCode::system with the limit that was met.
// Used by whatever opens files, lists folders or starts programs.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::core {

/// Throws core::Error (system) if `error` is such a shortage; `what` says what could not be done, without the reason.
void refuse_shortage(const std::string& what, std::string_view where, int error);

/// The error number of such a shortage if a library's words for its failure name one, else 0.
[[nodiscard]] int shortage_in(std::string_view reason);

}  // namespace lockstep::core
