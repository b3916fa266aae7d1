#include "data/importers/csv_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/ascii.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "core/suggest.hpp"
#include "data/format/names.hpp"
#include "data/importers/text.hpp"

namespace lockstep::data {
namespace {

class Selector {
 public:
  Selector(const std::vector<std::string>& names, std::size_t n) : names_{names}, n_{n} {
    for (const std::string& name : names_) ++n_called_[name];
  }

  [[nodiscard]] std::size_t one(std::string_view word, const char* flag) const {
    if (const auto column = find(word)) return *column;
    fail(word, flag);
  }

  void add(std::string_view word, const char* flag, std::vector<std::size_t>& columns) const {
    const auto column = find(word);
    const std::size_t dash = word.find('-');
    if (dash == std::string_view::npos) return columns.push_back(column ? *column : fail(word, flag));
    const std::string_view before = word.substr(0, dash), after = word.substr(dash + 1);
    if (column) {
      if (const auto from = place(before), to = place(after); from && to && *from <= *to)
        refuse_two(word, *column, fmt::format("also says columns {} to {}", numbered(*from), numbered(*to)));
      return columns.push_back(*column);
    }
    const auto first = find(before), last = find(after);
    if (!first || !last || *first > *last) fail(word, flag);
    for (std::size_t at = *first; at <= *last; ++at) columns.push_back(at);
  }

  /// For a column that is chosen by its place alone.
  void refuse_twin(std::size_t column) const {
    if (!names_.empty()) refuse_twins(names_[column], "the first line");
  }

  // Returns nothing: its type lets it stand where a column is needed.
  [[noreturn]] std::size_t fail(std::string_view word, const char* flag) const {
    const auto meant = core::near_miss(word, names_);
    core::fail_usage({.what = fmt::format("no column {}", in_quotes(word)),
                      .where = flag,
                      .expected = fmt::format("a place from #0 to #{0} or a number from 0 to {0}{1}", n_ - 1,
                                              names_.empty() ? "" : ", or one of " + shown_names()),
                      .fix = meant ? fmt::format("did you mean '{}'?", *meant) : "name an existing column"});
  }

 private:
  [[nodiscard]] std::optional<std::size_t> find(std::string_view word) const {
    word = trim(word);
    const std::string name = composed(word);
    const auto named = std::find(names_.begin(), names_.end(), name);
    const auto at = place(word);
    if (named == names_.end()) return at;
    const auto column = static_cast<std::size_t>(named - names_.begin());
    if (at && n_called_.at(name) == 1 && *at != column)
      refuse_two(word, column, fmt::format("says column {}", numbered(*at)));
    if (at && word.starts_with('#')) return at;
    refuse_twins(name, "--x-columns, --y-column");
    return column;
  }

  /// What "#3" and "3" say, whatever columns are called.
  [[nodiscard]] std::optional<std::size_t> place(std::string_view word) const {
    if (word.starts_with('#')) word.remove_prefix(1);
    const bool is_number = !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
    const auto number = is_number ? parse_integer(word) : std::nullopt;
    return number && static_cast<std::uint64_t>(*number) < n_ ? std::optional{static_cast<std::size_t>(*number)}
                                                              : std::nullopt;
  }

  [[noreturn]] static void refuse_two(std::string_view word, std::size_t named, const std::string& other) {
    core::fail_usage(
        {.what = fmt::format("{} is the name of column {}, and {}", in_quotes(word), numbered(named), other),
         .where = "--x-columns, --y-column",
         .expected = "a word that means one thing",
         .fix = fmt::format("give the places of columns, such as '{}'", numbered(named))});
  }

  void refuse_twins(std::string_view name, const char* where) const {
    if (n_called_.at(name) < 2) return;
    std::vector<std::string> twins;
    for (std::size_t column = 0; column < n_; ++column)
      if (names_[column] == name) twins.push_back(numbered(column));
    core::fail_usage(
        {.what = fmt::format("{} columns are called {}: {}", twins.size(), in_quotes(name), core::join(twins)),
         .where = where,
         .expected = "names that differ, or places",
         .fix = fmt::format("give columns by their places, such as --x-columns '#0-#{}' --y-column '#{}'",
                            std::max<std::size_t>(n_, 2) - 2, n_ - 1)});
  }

  [[nodiscard]] std::string shown_names() const {
    constexpr std::size_t most = 20;
    const std::string shown = core::printable(core::join(std::span{names_}.first(std::min(most, names_.size()))));
    return names_.size() > most ? shown + ", ..." : shown;
  }

  const std::vector<std::string>& names_;
  std::size_t n_;
  std::unordered_map<std::string_view, std::size_t> n_called_{};
};

}  // namespace

CsvColumns select_columns(const ImportOptions& options, const std::vector<std::string>& names, std::size_t n) {
  const Selector selector{names, n};
  CsvColumns columns{.x = {}, .y = options.y_column.empty() ? n - 1 : selector.one(options.y_column, "--y-column")};
  if (options.y_column.empty()) selector.refuse_twin(columns.y);
  if (options.x_columns.empty()) {
    for (std::size_t column = 0; column < n; ++column) {
      if (column == columns.y) continue;
      selector.refuse_twin(column);
      columns.x.push_back(column);
    }
    return columns;
  }
  Fields words;
  if (!split_fields(options.x_columns, ",", words)) selector.fail(options.x_columns, "--x-columns");
  for (const std::string_view word : words.all) selector.add(word, "--x-columns", columns.x);
  return columns;
}

std::string numbered(std::size_t column) { return fmt::format("#{}", column); }

bool has_no_name(std::string_view name) { return name.empty() || name.starts_with("Unnamed: "); }

bool is_index_name(std::string_view name) { return core::equal_ignoring_case(name, "index"); }

}  // namespace lockstep::data
