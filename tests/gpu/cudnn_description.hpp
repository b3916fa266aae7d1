// The GPU as cuDNN describes it.
// Invariant: the text is what GpuModel of cudnn_graph.hpp takes.
// Used by gpu_facts.
#pragma once

#include <string>

namespace lockstep::test {

/// Of the GPU in use, as JSON. Throws core::Error (system) in cuDNN's words.
[[nodiscard]] std::string describe_for_cudnn();

/// "9.19.0", of the library that is loaded.
[[nodiscard]] std::string cudnn_version();

}  // namespace lockstep::test
