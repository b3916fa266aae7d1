// Arrays on a device that optimizer kernels read and write, with types known at run time.
// Invariant: each begins at a multiple of 16 bytes, and pieces are within all of them.
// Used by the kernels of this folder.
#pragma once

#include <variant>

#include "core/dtype.hpp"
#include "runtime/device.hpp"

namespace lockstep::optim::cuda {

using runtime::DeviceSpan;
using runtime::Stream;

using Gradient =
    std::variant<DeviceSpan<const float>, DeviceSpan<const core::bfloat16>, DeviceSpan<const core::float16>>;

/// The rounded parameters for layers that do not read the parameters themselves.
using Copy = std::variant<std::monostate, DeviceSpan<core::bfloat16>, DeviceSpan<core::float16>>;

}  // namespace lockstep::optim::cuda
