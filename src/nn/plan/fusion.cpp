#include "nn/plan/fusion.hpp"

#include <algorithm>
#include <variant>

namespace lockstep::nn {
namespace {

bool is_product(const Node& node) { return traits(node.layer).is_product; }

bool is_relu(const Node& node) { return std::holds_alternative<Relu>(node.layer); }

}  // namespace

const Node& node_of(const Network& network, Value value) {
  return network.nodes()[static_cast<std::size_t>(value.node)];
}

bool needs_gradient(const Network& network, Value value) {
  const Node& node = node_of(network, value);
  return !node.parameters.empty() ||
         std::ranges::any_of(node.inputs, [&](Value input) { return needs_gradient(network, input); });
}

const Node* sole_reader(const Network& network, Value value) {
  const Node* reader = nullptr;
  for (const Node& node : network.nodes())
    for (const Value& input : node.inputs) {
      if (input.node != value.node) continue;
      if (reader != nullptr) return nullptr;
      reader = &node;
    }
  return reader;
}

const Value* normalized_input(const Network& network, const Node& add) {
  if (add.inputs.size() != 2) return nullptr;
  const auto is_left = [&](Value input) {
    const auto* const layer = std::get_if<BatchNorm>(&node_of(network, input).layer);
    if (layer == nullptr || layer->has_relu || sole_reader(network, input) != &add) return false;
    return needs_gradient(network, node_of(network, input).inputs[0]);  // otherwise its node receives no gradient
  };
  const auto found = std::ranges::find_if(add.inputs, is_left);
  return found == add.inputs.end() ? nullptr : &*found;
}

bool is_left_to_reader(const Network& network, Value normalized) {
  const Node* const reader = sole_reader(network, normalized);
  if (reader == nullptr || !std::holds_alternative<Add>(reader->layer)) return false;
  const Value* const left = normalized_input(network, *reader);
  return left != nullptr && left->node == normalized.node;
}

std::optional<std::size_t> normalization_at(const Network& network, Value value) {
  const Node& node = node_of(network, value);
  if (std::holds_alternative<BatchNorm>(node.layer) && !is_left_to_reader(network, value))
    return static_cast<std::size_t>(value.node);
  const Value* const left = std::holds_alternative<Add>(node.layer) ? normalized_input(network, node) : nullptr;
  return left != nullptr ? std::optional{static_cast<std::size_t>(left->node)} : std::nullopt;
}

bool is_rectified(const Network& network, Value product) {
  const Node& node = node_of(network, product);
  const Node* const reader = sole_reader(network, product);
  return is_product(node) && node.parameters.size() > 1 && reader != nullptr && is_relu(*reader);
}

bool has_masked_gradient(const Network& network, Value relu) {
  const Node* const reader = sole_reader(network, relu);
  return is_relu(node_of(network, relu)) && reader != nullptr && is_product(*reader);
}

}  // namespace lockstep::nn
