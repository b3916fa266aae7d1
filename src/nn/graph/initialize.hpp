// Initial parameters: PyTorch's distributions, drawn by counter.
// Invariant: an element depends only on the seed, the parameter's name and the element's place in PyTorch's order.
// Used by the trainer and by tests of backends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nn/graph/network.hpp"

namespace lockstep::nn {

/// `logical`: all elements of the parameter, in PyTorch's order.
void initialize(const Parameter& parameter, std::uint64_t seed, std::span<float> logical);
/// `part`: its elements from number `first` on.
void initialize_part(const Parameter& parameter, std::uint64_t seed, std::size_t first, std::span<float> part);

}  // namespace lockstep::nn
