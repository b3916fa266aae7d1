// Rows of a table, found by ids.
#pragma once

#include <optional>

#include "nn/graph/description.hpp"

namespace lockstep::nn {

/// Row `ids[column]` of a table, or the rows of all ids of a sample: {ids, width}.
struct Embedding {
  static constexpr LayerTraits traits{.word = "embedding"};

  std::uint64_t n_rows = 0;
  std::uint64_t width = 0;
  std::optional<std::uint64_t> column = 0;  ///< none: all ids

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    const std::uint64_t n_columns = inputs.ids()[0];
    if (column && *column >= n_columns)
      inputs.refuse("column " + std::to_string(*column) + " of the ids",
                    "one of " + std::to_string(n_columns) + " columns");
    inputs.expect_some(n_rows, "rows");
    inputs.expect_some(width, "elements in a row");
    return {column ? Shape{width} : Shape{n_columns, width}, {{"weight", {n_rows, width}, Init::normal}}};
  }

  /// Where the ids are in the samples' ids, which have `n_columns` each: `n` of each sample, and one every `step`.
  struct Lookups {
    std::uint64_t n;
    std::uint64_t first;
    std::uint64_t step;
  };
  [[nodiscard]] Lookups lookups(std::uint64_t n_columns) const noexcept {
    return column ? Lookups{1, *column, n_columns} : Lookups{n_columns, 0, 1};
  }
};

}  // namespace lockstep::nn
