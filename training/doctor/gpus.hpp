// The GPUs that this process sees, and the libraries for them that it has loaded.
// Invariant: takes no GPU memory; unknown members are empty.
// Used by collect.cpp.
#pragma once

#include "training/doctor/facts.hpp"

namespace lockstep::training::doctor {

[[nodiscard]] GpuFacts look_at_gpus();

/// "9.19.0" for 91900, the numbering of cuDNN 9 and NCCL.
[[nodiscard]] std::string version_of_number(std::uint64_t number);

}  // namespace lockstep::training::doctor
