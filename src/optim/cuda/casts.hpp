// Casts of arenas to another type, on a device.
// Invariant: to 16 bits rounded once, to nearest, ties to even; from 16 bits exact.
// Used by code that keeps parameters or gradients in two types.
#pragma once

#include "core/dtype.hpp"
#include "optim/cuda/arena.hpp"

namespace lockstep::optim::cuda {

// Both arenas have the same size, a multiple of range_multiple.

void cast(Stream& stream, DeviceSpan<const float> from, DeviceSpan<core::bfloat16> to);
void cast(Stream& stream, DeviceSpan<const float> from, DeviceSpan<core::float16> to);
void cast(Stream& stream, DeviceSpan<const core::bfloat16> from, DeviceSpan<float> to);
void cast(Stream& stream, DeviceSpan<const core::float16> from, DeviceSpan<float> to);

}  // namespace lockstep::optim::cuda
