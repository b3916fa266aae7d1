// Words of commands with the variables filled in whose values a script says.
// Invariant: pure; a variable that is set more than once, or by a command, is not known and stays as it is written.
// Used by job_script and script_lint.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "site/environment_lint.hpp"

namespace lockstep::site {

/// "run" of "$run", "${run}", "${run[@]}" and "${run[*]}"; empty if the word is something else.
[[nodiscard]] std::string_view expanded_name(std::string_view word) noexcept;

/// "a b" of a list "(a b)".
[[nodiscard]] std::string_view without_parentheses(std::string_view value) noexcept;

/// Whether `word` is an expansion and nothing beside, but for arithmetic: it may become any number of words.
[[nodiscard]] bool is_expansion(std::string_view word) noexcept;

class KnownValues {
 public:
  KnownValues() = default;
  explicit KnownValues(std::span<const Variable> variables);

  void forget(std::string_view name);

  /// A word that is a variable becomes the words of its value. Numbers are left out: arithmetic changes them unseen.
  [[nodiscard]] std::vector<std::string> fill_in(std::span<const std::string> words);

  /// Whether one of `words`, filled in, may become words that nobody knows.
  [[nodiscard]] bool leaves_unknown(std::span<const std::string> words) const;

 private:
  void fill_in(std::string_view word, int depth, std::vector<std::string>& into);

  std::map<std::string, std::string, std::less<>> values_{};
  std::size_t n_left_ = 10'000;  ///< words that are filled in, more than any script has: no text takes all memory
};

}  // namespace lockstep::site
