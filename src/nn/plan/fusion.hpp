// Which nodes of a network are computed as part of others.
// Invariant: decided by the network alone, so that the plans of different nodes agree.
// Used by nn/cuda: programs, layers, and lists of products. The host computes each node alone, and uses only the first
// three functions.
#pragma once

#include <cstddef>
#include <optional>

#include "nn/graph/network.hpp"

namespace lockstep::nn {

[[nodiscard]] const Node& node_of(const Network& network, Value value);

/// Whether the value's node, or a node before it, has parameters.
[[nodiscard]] bool needs_gradient(const Network& network, Value value);

/// Null if no node, several nodes, or one node twice reads it.
[[nodiscard]] const Node* sole_reader(const Network& network, Value value);

/// The batch normalization that an Add node also computes, in one pass over memory: an input that no other node reads.
/// Null if there is none.
[[nodiscard]] const Value* normalized_input(const Network& network, const Node& add);

/// Whether the Add node that reads `normalized`, a batch normalization, also computes it.
[[nodiscard]] bool is_left_to_reader(const Network& network, Value normalized);

/// The node of the batch normalization that the value's node computes: itself, unless it is left to its reader, or the
/// one that is left to this Add node.
[[nodiscard]] std::optional<std::size_t> normalization_at(const Network& network, Value value);

/// Whether a product also applies the ReLU that alone reads it. It does so if it adds a bias anyway.
[[nodiscard]] bool is_rectified(const Network& network, Value product);

/// Whether the only reader of a ReLU is a product that returns the gradient of the ReLU's input.
[[nodiscard]] bool has_masked_gradient(const Network& network, Value relu);

}  // namespace lockstep::nn
