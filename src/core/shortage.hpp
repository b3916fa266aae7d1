// Errors of the system that say nothing about a file: this process, its node or a disk has run out of something.
// Invariant: they are never damage or wrong usage, but ExitCode::system with the limit that was reached.
// Used by code that opens files, lists folders or starts programs.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::core {

/// Throws core::Error (system) if `error` is such a shortage; `what` is the failed action, without the reason.
void refuse_shortage(const std::string& what, std::string_view where, int error);

/// Returns the error number of such a shortage if a library's error text names one, else 0.
[[nodiscard]] int shortage_in(std::string_view reason);

/// Returns the fix for the limit that an error text names, such as that of file sizes; `otherwise` if it names none, or
/// a full disk.
[[nodiscard]] std::string fix_of_limit(std::string_view reason, std::string_view otherwise);

}  // namespace lockstep::core
