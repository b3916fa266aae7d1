// The commands of a shell script, as far as they can be told without running it.
// Invariant: never throws but for memory; any bytes will do, and what makes no sense ends with the text.
// Used by job_script.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::site {

/// Stands in words for a $ that the shell does not fill in: of '$A', "\$A" and $'$A'.
inline constexpr char literal_dollar = '\x1a';

/// A simple command: words without their quotes, expansions as they are written. Redirections of output are left out,
/// and so are words of the grammar ("if", "then", "!").
struct Command {
  int line = 0;  ///< of its first word
  std::vector<std::string> words{};
  std::string input{};         ///< the begin of what < or <<< gives it, or the end of what is before its |, as written
  bool is_condition = false;   ///< after if or elif, or one that tests: "[", "[[", "test"
  bool is_in_braces = false;   ///< as the body of a function is
  bool is_loop = false;        ///< after while or until
  bool is_endless = false;     ///< its here-document goes on to the end of the text
  bool is_background = false;  ///< an & comes after it, or after the list, group or loop that it is in
};

/// A character beyond ASCII outside of quotes and comments.
struct OddCharacter {
  int line = 0;
  char32_t code = 0;
};

/// What is not read as commands.
struct Unread {
  std::vector<bool> is_here_text{};  ///< whether a line, by its number, is of a here-document
  int open_line = 0;  ///< where a quote or bracket opens that never closes: all from there on is one word; 0: none
  int full_line = 0;  ///< nothing is read from there on: more words or deeper brackets than any job script has; 0: none
  int blank_line = 0;  ///< ends with a blank after a backslash, so that the command ends there; 0: none
  std::size_t n_words = 0;
  std::vector<OddCharacter> odd{};  ///< the first of them
  static constexpr std::size_t most_odd = 100;
};

/// In the order of the text; commands within $( ), <( ) and ` ` come after the command that holds them. Here-documents
/// are left out. Lines count from 1.
[[nodiscard]] std::vector<Command> read_commands(std::string_view text, Unread* unread = nullptr);

}  // namespace lockstep::site
