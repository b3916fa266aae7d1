// Pieces of text, as lists of words and values of directives have them.
// Invariant: pure; a view into the text that was given, any bytes will do.
// Used by the parsers of this folder.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::site {

/// Without white space at both ends.
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;

/// At each `separator`; "a,,b" has three parts, "" has one.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// What is between white space.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);

/// The lines of `table` below [`section`], without comments and empty ones, each as its cells, which have | between.
[[nodiscard]] std::vector<std::vector<std::string_view>> rows_below(std::string_view table, std::string_view section);

/// Whether `word` is one of `words`, which have white space between.
[[nodiscard]] bool is_one_of(std::string_view word, std::string_view words);

[[nodiscard]] bool starts_with_any(std::string_view text, std::span<const std::string_view> beginnings);

/// In any case of letters.
[[nodiscard]] bool contains_ignoring_case(std::string_view text, std::string_view part);

/// The number that the whole text is: "8", "-1"; nothing if it is something else.
[[nodiscard]] std::optional<long> whole_number(std::string_view text) noexcept;

/// After the last slash of a path.
[[nodiscard]] std::string_view file_name(std::string_view path) noexcept;

/// NAME of NAME=value, NAME+=value or NAME; empty if `word` begins with no name.
[[nodiscard]] std::string_view assigned_name(std::string_view word) noexcept;

/// "1 rank", "2 ranks".
[[nodiscard]] std::string counted(long n, std::string_view thing);

/// core::near_miss() of what may be a name; nothing if it is longer than any, so that no text takes long.
[[nodiscard]] std::optional<std::string> near_name(std::string_view word, std::span<const std::string> candidates);

/// "did you mean --nodes?" of a near_name(), with `dashes` before it; empty if there is none.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                                       std::string_view dashes = "");

/// The first of `table` whose `key` is `value`; nullptr if there is none.
template <class Table, class Value, class Key>
[[nodiscard]] auto find_by(const Table& table, const Value& value, Key key) -> decltype(&*std::begin(table)) {
  const auto found = std::ranges::find(table, value, key);
  return found == std::end(table) ? nullptr : &*found;
}

/// As find_by(), the last of them.
template <class Table, class Value, class Key>
[[nodiscard]] auto find_last_by(const Table& table, const Value& value, Key key) -> decltype(&*std::begin(table)) {
  for (auto at = std::rbegin(table); at != std::rend(table); ++at)
    if (std::invoke(key, *at) == value) return &*at;
  return nullptr;
}

/// A character beyond ASCII that looks like one of ASCII, or like nothing.
struct Lookalike {
  char32_t first;  ///< to `last`
  char32_t last;
  std::string_view name;   ///< "a curly quote"
  std::string_view meant;  ///< what it looks like; empty: nothing
};
/// nullptr if `code` is none.
[[nodiscard]] const Lookalike* find_lookalike(char32_t code);

/// With <U+2019> in the place of lookalikes, and $ of literal_dollar.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace lockstep::site
