// Converts numbers of one element type to another.
// Invariant: int64 is converted directly, so that whole numbers stay exact; the other types via float32.
// Used by data/augment/augment for x and by data/load/loader for y.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.hpp"

namespace lockstep::data {

/// (value - mean) / stddev by channel, in a cycle; both empty: values unchanged.
struct Normalization {
  std::span<const float> mean{};
  std::span<const float> stddev{};
};

/// `out` has as many elements as `in`; both may have any alignment. `to` is float32, bfloat16 or int64, or equals
/// `from`.
void convert(core::DType from, std::span<const std::byte> in, core::DType to, std::span<std::byte> out,
             const Normalization& normalization = {});

}  // namespace lockstep::data
