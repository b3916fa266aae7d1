#include "data/importers/csv_doubts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/importers/text.hpp"

namespace lockstep::data {
namespace {

bool are_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "1.234", "-12.500"
bool may_be_thousands(std::string_view field, std::size_t point) {
  constexpr std::size_t together = 3;
  std::string_view whole = field.substr(0, point);
  if (whole.starts_with('-') || whole.starts_with('+')) whole.remove_prefix(1);
  const std::string_view rest = field.substr(point + 1);
  return are_digits(whole) && whole.size() <= together && whole.front() != '0' && rest.size() == together &&
         are_digits(rest);
}

const char* plural(std::uint64_t n) { return n == 1 ? "" : "s"; }

void remark_rounded(const ColumnFacts& first, std::uint64_t n, const char* name, std::vector<Remark>& remarks) {
  remarks.push_back(
      changed(fmt::format("{} whole number{} of {} {} rounded, as float32 does not hold {}: {}", n, plural(n), name,
                          n == 1 ? "is" : "are", n == 1 ? "it" : "them", first.rounded)));
}

void remark_codes(const ColumnFacts& first, std::uint64_t n, const char* name, std::vector<Remark>& remarks) {
  remarks.push_back(warning(
      fmt::format("{} whole number{} of {} {} with a zero, which is lost: if {} codes, leave the "
                  "column out; the first is {}",
                  n, plural(n), name, n == 1 ? "begins" : "begin", n == 1 ? "it is one of" : "they are", first.code)));
}

using Count = std::uint64_t ColumnFacts::*;
using Say = void (*)(const ColumnFacts& first, std::uint64_t n, const char* name, std::vector<Remark>& remarks);

/// Adds the remark that `say` makes of the sum of `count` over all columns and of the first column that has any.
void remark_sum(std::span<const ColumnFacts> columns, const char* name, Count count, Say say,
                std::vector<Remark>& remarks) {
  std::uint64_t n = 0;
  for (const ColumnFacts& facts : columns) n += facts.*count;
  const auto first = std::ranges::find_if(columns, [&](const ColumnFacts& facts) { return facts.*count > 0; });
  if (n > 0) say(*first, n, name, remarks);
}

// A point that was none of decimals is taken for one.
void remark_points(const ColumnFacts& facts, std::vector<Remark>& remarks) {
  if (facts.n_pointed == 0 || facts.n_unlike > 0) return;
  remarks.push_back(
      warning(fmt::format("{}: all {} points have three digits behind them and are taken as decimal: write 1234 where "
                          "1.234 means that",
                          facts.shown, facts.n_pointed)));
}

// They teach nothing; that is often a slip of whoever wrote the file.
void remark_constant(std::span<const ColumnFacts> x, std::vector<Remark>& remarks) {
  const auto is_constant = [](const ColumnFacts& facts) { return facts.only.has_value(); };
  const auto n = static_cast<std::uint64_t>(std::ranges::count_if(x, is_constant));
  if (n == 0) return;
  const auto first = std::ranges::find_if(x, is_constant);
  remarks.push_back(note(fmt::format("{} column{} of x {} one value in all rows, such as {}: {}", n, plural(n),
                                     n == 1 ? "has" : "have", first->shown, *first->only)));
}

void remark_answers(std::span<const ColumnFacts> x, std::vector<Remark>& remarks) {
  for (const ColumnFacts& facts : x)
    if (facts.is_y && !facts.only)
      remarks.push_back(
          warning(fmt::format("{} has the value of y in every row: a model sees the answer", facts.shown)));
}

}  // namespace

void ColumnFacts::add(std::string_view field, float value, std::uint64_t row, std::uint64_t line) {
  if (row == 0) first = only = value;
  if (first && value != *first + static_cast<float>(row)) first.reset();
  if (only && value != *only) only.reset();
  if (is_rounded_whole(field, value) && n_rounded++ == 0)
    rounded = fmt::format("{} became {:.0f} (line {}, {})", in_quotes(field), value, line, shown);
  if (field.size() > 1 && field.front() == '0' && are_digits(field) && n_codes++ == 0)
    code = fmt::format("{} (line {}, {})", in_quotes(field), line, shown);
  if (const std::size_t point = field.find('.'); point != std::string_view::npos)
    ++(may_be_thousands(field, point) ? n_pointed : n_unlike);
}

std::vector<Remark> remarks_on_columns(std::span<const ColumnFacts> x, const ColumnFacts& y, std::uint64_t n_rows,
                                       bool has_semicolons) {
  std::vector<Remark> remarks;
  const std::span only_y{&y, 1};
  remark_sum(x, "x", &ColumnFacts::n_rounded, remark_rounded, remarks);
  remark_sum(only_y, "y", &ColumnFacts::n_rounded, remark_rounded, remarks);
  remark_sum(x, "x", &ColumnFacts::n_codes, remark_codes, remarks);
  remark_sum(only_y, "y", &ColumnFacts::n_codes, remark_codes, remarks);
  if (n_rows > 1) {
    remark_constant(x, remarks);
    remark_answers(x, remarks);
    if (y.only) remarks.push_back(warning(fmt::format("y has one value in all rows: {}", *y.only)));
  }
  if (!has_semicolons) return remarks;
  for (const ColumnFacts& facts : x) remark_points(facts, remarks);
  remark_points(y, remarks);
  return remarks;
}

}  // namespace lockstep::data
