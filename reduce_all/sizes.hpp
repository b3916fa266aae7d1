// The sizes a run goes through.
// Invariant: ascending, every one a whole number of elements, none above --max-bytes.
// Used by the option checks and the sweep.
#pragma once

#include <vector>

#include "core/units.hpp"
#include "reduce_all/options.hpp"

namespace lockstep::reduce_all {

/// Sizes for one type: min_bytes times powers of step_factor, or in steps of step_bytes. With `-d all` sizes, the
/// largest too, are rounded up to whole elements, so that every type has one. Throws core::Error (usage) for a size that is no multiple of the element.
[[nodiscard]] std::vector<core::Bytes> sizes(const Options& options, core::DType dtype);

}  // namespace lockstep::reduce_all
