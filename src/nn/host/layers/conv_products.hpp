// A convolution with a small output map, as matrix products on the tensors in place.
// Invariant: only products with existing elements: nothing is padded, and no columns are gathered. Channels are last,
// weights are {outputs, rows, columns, inputs}, and so are the gradients.
// Used by nn/host/layers/conv: for such maps oneDNN multiplies mostly padding, or has only reference code.
#pragma once

#include <memory>

#include "nn/host/kernel.hpp"

namespace lockstep::nn::host {

/// Decided by shape and precision, so for any batch and on every rank.
[[nodiscard]] bool is_for_products(const Planned& planned, const Conv& layer);

[[nodiscard]] std::unique_ptr<Kernel> make_conv_products(const Planned& planned, const Conv& layer);

}  // namespace lockstep::nn::host
