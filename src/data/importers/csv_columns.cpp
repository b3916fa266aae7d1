#include "data/importers/csv_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

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
    if (const auto column = find(word)) return columns.push_back(*column);
    const std::size_t dash = word.find('-');
    if (dash == std::string_view::npos) fail(word, flag);
    const auto first = find(word.substr(0, dash));
    const auto last = find(word.substr(dash + 1));
    if (!first || !last || *first > *last) fail(word, flag);
    for (std::size_t column = *first; column <= *last; ++column) columns.push_back(column);
  }

  /// For a column that is chosen by its place alone.
  void refuse_twin(std::size_t column) const {
    if (!names_.empty()) refuse_twins(names_[column], "the first line");
  }

  [[noreturn]] void fail(std::string_view word, const char* flag) const {
    const auto meant = core::near_miss(word, names_);
    core::fail_usage({.what = fmt::format("no column {}", in_quotes(word)),
                      .where = flag,
                      .expected = fmt::format("a number from 0 to {}{}", n_ - 1,
                                              names_.empty() ? "" : ", or one of " + shown_names()),
                      .fix = meant ? fmt::format("did you mean '{}'?", *meant) : "name an existing column"});
  }

 private:
  [[nodiscard]] std::optional<std::size_t> find(std::string_view word) const {
    const std::string name = composed(word);
    const auto named = std::find(names_.begin(), names_.end(), name);
    if (named != names_.end()) {
      refuse_twins(name, "--x-columns, --y-column");
      return static_cast<std::size_t>(named - names_.begin());
    }
    const auto number = parse_integer(word);
    if (number && *number >= 0 && static_cast<std::uint64_t>(*number) < n_) return static_cast<std::size_t>(*number);
    return std::nullopt;
  }

  void refuse_twins(std::string_view name, const char* where) const {
    if (n_called_.at(name) < 2) return;
    std::vector<std::string> twins;
    for (std::size_t column = 0; column < n_; ++column)
      if (names_[column] == name) twins.push_back(std::to_string(column));
    core::fail_usage(
        {.what = fmt::format("{} columns are called {}: {}", twins.size(), in_quotes(name), core::join(twins)),
         .where = where,
         .expected = "names that differ, or numbers",
         .fix = fmt::format("give columns by their numbers from 0 on, such as --x-columns 0-{} --y-column {}",
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

bool has_no_name(std::string_view name) { return name.empty() || name.starts_with("Unnamed: "); }

}  // namespace lockstep::data
