// How far quotes, brackets and here-documents of a shell script go.
// Invariant: pure; never throws but for memory, whatever the bytes, and takes a time in proportion to their number.
// Used by shell.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::site {

/// What is open. Quotes and brackets within it, comments and here-documents are passed over as the shell does.
enum class Open : char {
  commands,    ///< ( ), $( ) and the list of NAME=( )
  arithmetic,  ///< the outer ones of (( )) and $(( ))
  parameter,   ///< ${ }
  backticks,
  quotes  ///< " "
};

/// Past what closes `what`, which has opened just before `begin`; nothing if nothing does. A ' in ${ } of " " is none.
[[nodiscard]] std::optional<std::size_t> end_of(std::string_view text, std::size_t begin, Open what, bool is_quoted);

/// Past the ' that closes $' before `begin`; nothing if none does.
[[nodiscard]] std::optional<std::size_t> end_of_escaped(std::string_view text, std::size_t begin);

struct HereWord {
  std::string end{};      ///< the last line of the here-document, without quotes
  std::size_t after = 0;  ///< past the word
};

/// The word after the << before `begin`.
[[nodiscard]] HereWord read_here_word(std::string_view text, std::size_t begin);

/// Past the line `end` of the here-document whose first line begins at `begin`; nothing if no line is that.
[[nodiscard]] std::optional<std::size_t> end_of_here_document(std::string_view text, std::size_t begin,
                                                              std::string_view end);

}  // namespace lockstep::site
