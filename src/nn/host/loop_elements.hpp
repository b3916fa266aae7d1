// How loops read and write elements that may be float32 or bfloat16: they compute in float32, and round once.
// Invariant: nothing here has external linkage, as core/loop_sets.hpp demands of what sources of loops share.
// Used by the loops of nn/host and nn/ops.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace lockstep::nn::host {
namespace {

[[gnu::always_inline]] inline float load(float x) { return x; }
[[gnu::always_inline]] inline float load(core::bfloat16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
}

/// Bits whose upper half is the nearest bfloat16, ties to even; NaN stays NaN.
[[gnu::always_inline]] inline std::uint32_t rounded(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t to_even = bits + 0x7fff + ((bits >> 16) & 1);
  return (bits & 0x7fff'ffff) > 0x7f80'0000 ? bits | 0x0040'0000 : to_even;
}

[[gnu::always_inline]] inline void store(float x, float& out) { out = x; }
[[gnu::always_inline]] inline void store(float x, core::bfloat16& out) {
  out.bits = static_cast<std::uint16_t>(rounded(x) >> 16);
}

}  // namespace
}  // namespace lockstep::nn::host
