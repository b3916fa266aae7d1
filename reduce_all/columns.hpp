// The columns of the result files: the figures of a row, under the names that programs read.
// Invariant: names and their order never change; new ones come last.
// Used by the writers of CSV and JSON, and by the test of the schema.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "reduce_all/result.hpp"

namespace lockstep::reduce_all {

/// Nothing if the sample does not support the figure, or if it was not measured.
using Value = std::variant<std::monostate, bool, std::uint64_t, double, std::string_view>;

struct Column {
  std::string_view name;
  Value (*value)(const Row& row);
};

[[nodiscard]] std::span<const Column> columns() noexcept;

}  // namespace lockstep::reduce_all
