#include "nn/cuda/convolution.hpp"

#include <algorithm>

namespace lockstep::nn::cuda {

bool needs_gradient(const Network& network, Value value) {
  const Node& node = network.nodes()[static_cast<std::size_t>(value.node)];
  return !node.parameters.empty() ||
         std::ranges::any_of(node.inputs, [&](Value input) { return needs_gradient(network, input); });
}

std::vector<Product> products_of(const Network& network, std::uint64_t n_samples) {
  std::vector<Product> products;
  const std::vector<ValueLayout> layouts = layouts_of(network);
  for (std::size_t i = 0; i < network.nodes().size(); ++i) {
    const std::optional<ConvProblem> problem = problem_of(network, i, layouts, n_samples);
    if (!problem) continue;
    products.push_back({*problem, ConvPass::forward});
    products.push_back({*problem, ConvPass::weight_gradient});
    if (needs_gradient(network, network.nodes()[i].inputs[0])) products.push_back({*problem, ConvPass::input_gradient});
  }
  return products;
}

}  // namespace lockstep::nn::cuda
