// Which columns of a CSV file are x and which is y.
// Invariant: every number is that of an existing column.
// Used by the CSV importer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "data/importers/importers.hpp"

namespace lockstep::data {

struct CsvColumns {
  std::vector<std::size_t> x;
  std::size_t y = 0;
};

/// By the options, out of `n` columns; `names` has one entry for each, or none if the file has no header. A word is a
/// place ("#0"), a name, a number from 0 on, or (x) a range of these. core::Error (usage) naming flag, word and near
/// misses; if a word names a column and says the place of another; or, with the columns, if several have the name of
/// one that is not chosen by its place.
[[nodiscard]] CsvColumns select_columns(const ImportOptions& options, const std::vector<std::string>& names,
                                        std::size_t n);

/// "#3", as the options take it.
[[nodiscard]] std::string numbered(std::size_t column);

/// Whether a column of this name may be the numbers of the rows, which pandas (`Unnamed: 0`) and R write.
[[nodiscard]] bool has_no_name(std::string_view name);
/// Whether the name says that these are the numbers of the rows: `index`, as pandas' reset_index() calls them.
[[nodiscard]] bool is_index_name(std::string_view name);

}  // namespace lockstep::data
