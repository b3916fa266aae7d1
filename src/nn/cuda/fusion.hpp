// Which nodes of a network are computed as part of others.
// Invariant: decided by the network alone, so that the plans of different nodes agree.
// Used by nn/cuda: the program and its layers, and lists of their products.
#pragma once

#include <cstddef>
#include <vector>

#include "nn/network.hpp"

namespace lockstep::nn::cuda {

[[nodiscard]] const Node& node_of(const Network& network, Value value);

/// Whether a parameter before it, or of itself, has a gradient.
[[nodiscard]] bool needs_gradient(const Network& network, Value value);

/// Null if none or several nodes read it, or one twice.
[[nodiscard]] const Node* sole_reader(const Network& network, Value value);

/// The batch normalization that an Add node computes besides, in one pass over memory, if an input that nobody else
/// reads is one; or null.
[[nodiscard]] const Value* normalized_by(const Network& network, const Node& add);

/// Whether it is left to the Add node that reads it.
[[nodiscard]] bool is_left_to_reader(const Network& network, Value normalized);

/// Batch normalizations in the order in which they are computed: indices of nodes.
[[nodiscard]] std::vector<std::size_t> normalizations(const Network& network);

/// Whether a product is given to its only reader, a ReLU, as that would leave it: where a bias is added anyway.
[[nodiscard]] bool is_rectified(const Network& network, Value product);

/// Whether the gradient of a ReLU's output comes as that of its input: from a product that alone reads it.
[[nodiscard]] bool has_masked_gradient(const Network& network, Value relu);

}  // namespace lockstep::nn::cuda
