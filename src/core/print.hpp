// Results on stdout, at once and in full; and last words.
// Invariant: text that does not get out, as on a full disk, is an error and not a silence; nothing steers the terminal.
// Used by the programs.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace lockstep::core {

/// First of all in a program: 0, 1 or 2, where they are closed, would be taken by the next file that is opened, a data
/// file for example, and what is printed would be written into it. Stdout stays one that cannot be written.
void keep_standard_places() noexcept;

/// As printable() shows it, in lines; a reader behind a pipe sees every line when it is done. Throws core::Error
/// (system) if stdout refuses.
void print(std::string_view text);

/// What print() throws; `error`: errno.
[[nodiscard]] Error lost_stdout(int error, SourceLocation location = SourceLocation::current());

template <class First, class... Rest>
void print(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  print(std::string_view{fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...)});
}

/// For a process that is about to end: without stdio, whose locks others may hold; what nobody takes within a second is
/// lost.
void write_in_time(int descriptor, std::string_view text) noexcept;

/// For work that is worth more than its lines: goes on when stdout refuses, and tells at the end.
class Printer {
 public:
  /// Nothing more is printed after the first text that did not get out.
  void print(std::string_view text);
  /// Why that was; nothing if all got out.
  [[nodiscard]] const std::optional<Error>& complaint() const noexcept { return complaint_; }

 private:
  std::optional<Error> complaint_{};
};

}  // namespace lockstep::core
