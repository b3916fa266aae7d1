// The numbers of a step in a device's memory, and steps that are made by nobody.
// Invariant: what is put there travels with the launch, so no memory of the host has to stay as it is.
// Used by nn/cuda and parallel/.
#pragma once

#include "core/step_numbers.hpp"
#include "runtime/device.hpp"

namespace lockstep::runtime::kernel {

/// `to`: one.
void put(Stream& stream, DeviceSpan<core::StepNumbers> to, const core::StepNumbers& numbers);

/// `kept` becomes as `values` if `skips`, of one, is 0; else `values` become as `kept` again.
void keep_unless(Stream& stream, DeviceSpan<const std::uint32_t> skips, DeviceSpan<float> values,
                 DeviceSpan<float> kept);

}  // namespace lockstep::runtime::kernel
