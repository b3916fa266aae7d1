// Results on stdout, at once and in full; and last words.
// Invariant: text that cannot be written, as on a full disk, is an error; no text steers the terminal.
// Used by the programs.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace lockstep::core {

/// Call it first in a program. If descriptor 0, 1 or 2 is closed, the next file that is opened, such as a data file,
/// would get it, and output would go into that file. A closed stdout stays unwritable.
void keep_standard_places() noexcept;

/// Prints `text` as printable() shows it, line by line: the reader of a pipe sees every line as soon as it is complete.
/// Throws core::Error (system) if stdout fails.
void print(std::string_view text);

/// The error that print() throws; `error`: errno.
[[nodiscard]] Error lost_stdout(int error, SourceLocation location = SourceLocation::current());

template <class First, class... Rest>
void print(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  print(std::string_view{fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...)});
}

/// For a process that is about to end: does not use stdio, whose locks others may hold. Output that no reader takes
/// within a second is lost.
void write_in_time(int descriptor, std::string_view text) noexcept;

/// For work that is more valuable than its output: continues if stdout fails, and reports that at the end.
class Printer {
 public:
  /// Prints nothing more after the first failure.
  void print(std::string_view text);
  /// The first failure; nothing if all was printed.
  [[nodiscard]] const std::optional<Error>& complaint() const noexcept { return complaint_; }

 private:
  std::optional<Error> complaint_{};
};

}  // namespace lockstep::core
