#include "core/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace lockstep::core {
namespace {

constexpr std::string_view gap = "  ";

// `text_of(i)` returns the cell of column i. Lines end without spaces.
template <class TextOf>
std::string line(std::string start, const std::vector<Column>& columns, TextOf text_of) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string_view text = text_of(i);
    if (i > 0) start += gap;
    start += columns[i].align == Align::left ? fmt::format("{:<{}}", text, columns[i].width)
                                             : fmt::format("{:>{}}", text, columns[i].width);
  }
  start.erase(start.find_last_not_of(' ') + 1);
  return start + '\n';
}

}  // namespace

Table::Table(std::vector<Column> columns, std::string prefix)
    : columns_{std::move(columns)}, prefix_{std::move(prefix)} {
  for (Column& column : columns_) column.width = std::max({column.width, column.header.size(), column.unit.size()});
}

std::string Table::header() const {
  std::string text = line(prefix_, columns_, [&](std::size_t i) { return std::string_view{columns_[i].header}; });
  if (std::any_of(columns_.begin(), columns_.end(), [](const Column& column) { return !column.unit.empty(); }))
    text += line(prefix_, columns_, [&](std::size_t i) { return std::string_view{columns_[i].unit}; });
  return text;
}

std::string Table::row(const std::vector<std::string>& cells) const {
  require(cells.size() == columns_.size(), "a row has one cell per column");
  return line(std::string(prefix_.size(), ' '), columns_, [&](std::size_t i) { return std::string_view{cells[i]}; });
}

}  // namespace lockstep::core
