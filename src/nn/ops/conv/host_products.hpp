// A convolution with a small output map, as matrix products on the tensors in place.
// Invariant: multiplies existing elements only: no padding, no gathered columns. Channels are last; weights and their
// gradients are {outputs, rows, columns, inputs}.
// Used by ops/conv/host.cpp: for such maps oneDNN multiplies mostly padding, or has only reference code.
#pragma once

#include <memory>

#include "nn/host/layers.hpp"

namespace lockstep::nn::host {

/// Depends on shape and precision only, so it is the same for any batch and on every rank.
[[nodiscard]] bool is_for_products(const Planned& planned, const Conv& layer);

[[nodiscard]] std::unique_ptr<HostLayer> make_conv_products(const Planned& planned, const Conv& layer);

}  // namespace lockstep::nn::host
