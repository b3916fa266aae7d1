// Aligned text tables that can be printed row by row, before the last row is known.
// Invariant: a column never becomes narrower than its header; a longer cell widens its own line only.
// Used by both programs, for what they print in columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::core {

enum class Align { left, right };

struct Column {
  std::string header{};
  std::string unit{};     ///< second header line; empty if none
  std::size_t width = 0;  ///< least width; the header's if that is greater
  Align align = Align::right;
};

/// Formats lines; the caller writes them.
class Table {
 public:
  explicit Table(std::vector<Column> columns, std::string prefix = "");

  /// Header lines (titles, then units if any column has one), each with the prefix first and its newline.
  [[nodiscard]] std::string header() const;
  /// One line with its newline, indented by the length of the prefix; `cells` has as many entries as there are columns.
  [[nodiscard]] std::string row(const std::vector<std::string>& cells) const;

 private:
  std::vector<Column> columns_;
  std::string prefix_;
};

}  // namespace lockstep::core
