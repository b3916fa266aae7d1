// The calls of a run: every type, op and size.
// Invariant: sizes ascend, every one a whole number of elements, none above --max-bytes.
// Used by the command line, which makes their list once, and by all code that reads it.
#pragma once

#include <span>
#include <vector>

#include "comm/collective.hpp"
#include "core/units.hpp"
#include "reduce_all/options.hpp"

namespace lockstep::reduce_all {

/// Returns the calls in the order of measuring. With `-d all` sizes, including the largest, are rounded up to whole
/// elements, so that every type has one. Throws core::Error (usage) for a size that is not a multiple of the element.
[[nodiscard]] std::vector<comm::Call> find_calls(const Options& options);

/// The longest vector of them.
[[nodiscard]] core::Bytes largest_size(std::span<const comm::Call> calls);

}  // namespace lockstep::reduce_all
