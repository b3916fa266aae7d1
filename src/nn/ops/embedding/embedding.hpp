// Rows of a table, found by ids.
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

/// Row `ids[column]` of a table.
struct Embedding {
  static constexpr LayerTraits traits{.word = "embedding"};

  std::uint64_t n_rows = 0;
  std::uint64_t width = 0;
  std::uint64_t column = 0;

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    const std::uint64_t n_columns = inputs.ids()[0];
    if (column >= n_columns)
      inputs.refuse("column " + std::to_string(column) + " of the ids",
                    "one of " + std::to_string(n_columns) + " columns");
    inputs.expect_some(n_rows, "rows");
    inputs.expect_some(width, "elements in a row");
    return {{width}, {{"weight", {n_rows, width}, Init::normal}}};
  }
};

}  // namespace lockstep::nn
