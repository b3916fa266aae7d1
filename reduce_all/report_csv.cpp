#include <fmt/format.h>

#include "reduce_all/columns.hpp"
#include "reduce_all/report.hpp"

namespace lockstep::reduce_all {
namespace {

std::string field(const Value& value) {
  return std::visit(
      []<class T>(const T& figure) {
        if constexpr (std::is_same_v<T, std::monostate>)
          return std::string{};
        else
          return fmt::format("{}", figure);
      },
      value);
}

template <class Field>
std::string join_columns(Field field_of) {
  std::string line;
  for (const Column& column : columns()) {
    if (!line.empty()) line += ',';
    line += field_of(column);
  }
  return line + '\n';
}

}  // namespace

std::string csv_header() {
  return join_columns([](const Column& column) { return std::string{column.name}; });
}

std::string csv_row(const Row& row) {
  return join_columns([&row](const Column& column) { return field(column.value(row)); });
}

}  // namespace lockstep::reduce_all
