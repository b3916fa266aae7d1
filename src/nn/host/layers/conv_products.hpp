// A convolution to a map of few places, as matrix products on the tensors as they lie.
// Invariant: only products with elements that are there: nothing is padded, and no columns are gathered. Channels lie
// last, weights as {outputs, rows, columns, inputs}; so do the gradients.
// Used by nn/host/layers/conv: at such maps oneDNN multiplies mostly padding, or has nothing but reference code.
#pragma once

#include <memory>

#include "nn/host/kernel.hpp"

namespace lockstep::nn::host {

/// As the shape and the precision say, so for any batch and on every rank.
[[nodiscard]] bool is_for_products(const Planned& planned, const Conv& layer);

[[nodiscard]] std::unique_ptr<Kernel> make_conv_products(const Planned& planned, const Conv& layer);

}  // namespace lockstep::nn::host
