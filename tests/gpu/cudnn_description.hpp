// The GPU as cuDNN describes it.
// Invariant: GpuModel of cudnn_graph.hpp accepts the text.
// Used by gpu_facts.
#pragma once

#include <string>

namespace lockstep::test {

/// Describes the GPU in use, as JSON. Throws core::Error (system) with cuDNN's message.
[[nodiscard]] std::string describe_for_cudnn();

/// The version of the loaded library: "9.19.0".
[[nodiscard]] std::string cudnn_version();

}  // namespace lockstep::test
