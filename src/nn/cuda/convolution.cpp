#include "nn/cuda/convolution.hpp"

#include "nn/plan/fusion.hpp"

namespace lockstep::nn::cuda {

std::string_view name(const Product& product) noexcept {
  switch (product.epilogue) {
    case Epilogue::none: break;
    case Epilogue::bias: return "conv_bias";
    case Epilogue::bias_relu: return "conv_bias_relu";
    case Epilogue::relu_backward: return "conv_input_gradient_relu";
    case Epilogue::kept: return "conv_weight_gradient_kept";
  }
  switch (product.pass) {
    case ConvPass::forward: return "conv";
    case ConvPass::input_gradient: return "conv_input_gradient";
    case ConvPass::weight_gradient: break;
  }
  return "conv_weight_gradient";
}

std::optional<NodeProducts> products_of(const Network& network, std::size_t index, std::span<const ValueLayout> layouts,
                                        std::uint64_t n_samples) {
  const std::optional<ConvProblem> problem = problem_of(network, index, layouts, n_samples);
  if (!problem) return std::nullopt;
  const Node& node = network.nodes()[index];
  NodeProducts products{.forward = {*problem, ConvPass::forward},
                        .weight_gradient = {*problem, ConvPass::weight_gradient},
                        .input_gradient = std::nullopt};
  if (node.parameters.size() > 1)
    products.forward.epilogue = is_rectified(network, {static_cast<int>(index)}) ? Epilogue::bias_relu : Epilogue::bias;
  if (!fold_of(network, node)) products.weight_gradient.epilogue = Epilogue::kept;
  if (!needs_gradient(network, node.inputs[0])) return products;
  products.input_gradient = {*problem, ConvPass::input_gradient};
  if (has_masked_gradient(network, node.inputs[0])) products.input_gradient->epilogue = Epilogue::relu_backward;
  return products;
}

std::vector<Product> products_of(const Network& network, std::uint64_t n_samples) {
  std::vector<Product> products;
  const std::vector<ValueLayout> layouts = layouts_of(network);
  for (std::size_t i = 0; i < network.nodes().size(); ++i) {
    const std::optional<NodeProducts> of_node = products_of(network, i, layouts, n_samples);
    if (!of_node) continue;
    products.insert(products.end(), {of_node->forward, of_node->weight_gradient});
    if (of_node->input_gradient) products.push_back(*of_node->input_gradient);
  }
  return products;
}

}  // namespace lockstep::nn::cuda
