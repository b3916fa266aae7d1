// What this process sees of GPUs, and which libraries for them it has loaded.
// Invariant: takes no memory of a GPU; what it cannot find out is empty.
// Used by collect.cpp.
#pragma once

#include "training/doctor/facts.hpp"

namespace lockstep::training::doctor {

[[nodiscard]] GpuFacts look_at_gpus();

/// "9.19.0" of 91900, as cuDNN 9 and NCCL count.
[[nodiscard]] std::string version_of_number(std::uint64_t number);

}  // namespace lockstep::training::doctor
