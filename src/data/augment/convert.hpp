// Numbers of one element type as those of another.
// Invariant: int64 is reached directly, so that whole numbers stay exact; the other types by way of float32.
// Used by data/augment/augment for x and by data/load/loader for y.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.hpp"

namespace lockstep::data {

/// (value - mean) / stddev of channels that follow one another; both empty: values as they are.
struct Normalization {
  std::span<const float> mean{};
  std::span<const float> stddev{};
};

/// `out` has as many elements as `in`, at any alignment both: of float32, bfloat16 or int64, or of type `from`.
void convert(core::DType from, std::span<const std::byte> in, core::DType to, std::span<std::byte> out,
             const Normalization& normalization = {});

}  // namespace lockstep::data
