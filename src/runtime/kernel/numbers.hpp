// The numbers of a step in a device's memory, and undoing skipped steps.
// Invariant: the values travel with the launch, so no memory of the host has to stay unchanged.
// Used by nn/cuda and parallel/.
#pragma once

#include "core/step_numbers.hpp"
#include "runtime/device.hpp"

namespace lockstep::runtime::kernel {

/// `to` has one element.
void put(Stream& stream, DeviceSpan<core::StepNumbers> to, const core::StepNumbers& numbers);

/// Copies `values` to `kept` if `skips`, of one element, is 0; else copies `kept` back to `values`.
void keep_unless(Stream& stream, DeviceSpan<const std::uint32_t> skips, DeviceSpan<float> values,
                 DeviceSpan<float> kept);

}  // namespace lockstep::runtime::kernel
