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
/// name, else a number from 0 on, else (x) a range of these. core::Error (usage) naming flag, word and near misses, or
/// the columns if several have the name of one that is chosen in another way than by its number.
[[nodiscard]] CsvColumns select_columns(const ImportOptions& options, const std::vector<std::string>& names,
                                        std::size_t n);

/// Whether a column of this name may be the numbers of the rows, which pandas (`Unnamed: 0`) and R write.
[[nodiscard]] bool has_no_name(std::string_view name);

}  // namespace lockstep::data
