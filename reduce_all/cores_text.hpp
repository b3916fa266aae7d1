// The text about the distance of the cores: before the table, in its rows and after it.
// Invariant: every figure is measured; nothing is said about what was not measured.
// Used by the text report and the verdict.
#pragma once

#include <span>
#include <string>

#include "reduce_all/cores.hpp"
#include "reduce_all/result.hpp"

namespace lockstep::reduce_all {

/// Without line end.
[[nodiscard]] std::string describe_cores(const CoreReach& reach, std::size_t n_ranks);

/// The round trip in ns, `before>after` if it changed, `-` if it was not measured.
[[nodiscard]] std::string cores_cell(const Row& row);

/// The sizes measured while cores moved. Empty if none.
[[nodiscard]] std::string name_moving(std::span<const Row> rows);

/// The sizes measured at each distance, if distances differ between sizes. Empty if not.
[[nodiscard]] std::string name_distances(std::span<const Row> rows);

}  // namespace lockstep::reduce_all
