// What is seen of the columns of a CSV file while it is read, and what of it was perhaps not meant.
// Invariant: changes nothing; every remark names the first value that it counts.
// Used by the CSV importer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/source.hpp"

namespace lockstep::data {

/// Numbers of a column, in one of whose rows each is looked at.
struct ColumnFacts {
  std::string shown{};           ///< "column 0 (zip)"
  std::optional<float> first{};  ///< its rows are this, one more, ...
  std::optional<float> only{};   ///< all of its rows are this
  bool is_y = true;              ///< in each row the value of y
  std::uint64_t n_rounded = 0;   ///< whole numbers that float32 does not hold
  std::string rounded{};         ///< the first of them
  std::uint64_t n_codes = 0;     ///< whole numbers that begin with a zero
  std::string code{};            ///< the first of them
  std::uint64_t n_pointed = 0;   ///< with a point that may separate thousands
  std::uint64_t n_unlike = 0;    ///< with a point that cannot

  /// Row `row`, from 0 on, in this line of the file.
  void add(std::string_view field, float value, std::uint64_t row, std::uint64_t line);
};

/// Returns remarks on columns of `n_rows` rows. It doubts points if semicolons separate, as with a decimal comma.
[[nodiscard]] std::vector<Remark> remarks_on_columns(std::span<const ColumnFacts> x, const ColumnFacts& y,
                                                     std::uint64_t n_rows, bool has_semicolons);

}  // namespace lockstep::data
