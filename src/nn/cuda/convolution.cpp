#include "nn/cuda/convolution.hpp"

#include <fmt/format.h>

#include "nn/plan/fusion.hpp"

namespace lockstep::nn::cuda {

std::string describe(const ConvProblem& p) {
  return fmt::format("{}x{}x{}x{} by {}x{}x{}/{}+{}", p.n_samples, p.height, p.width, p.n_in, p.n_out, p.kernel,
                     p.kernel, p.stride, p.padding);
}

std::optional<Fold> fold_of(const Network& network, const Node& node) {
  const auto* const conv = std::get_if<Conv>(&node.layer);
  if (conv == nullptr || conv->stride != 2 || conv->kernel < 3 || conv->kernel != 2 * conv->padding + 1) return {};
  const Node& input = network.nodes()[static_cast<std::size_t>(node.inputs[0].node)];
  if (!std::holds_alternative<Input>(input.layer) || input.output.size() != 3) return {};
  const bool is_even = input.output[1] % 2 == 0 && input.output[2] % 2 == 0;
  if (!is_even || input.output[0] > Fold::most_channels) return {};
  return Fold{static_cast<int>(conv->kernel)};
}

namespace {

/// The product of a node, folded if possible; nothing if the node has none.
std::optional<ConvProblem> problem_of(const Network& network, std::size_t index, std::span<const ValueLayout> layouts,
                                      std::uint64_t n_samples) {
  const Node& node = network.nodes()[index];
  const auto* const conv = std::get_if<Conv>(&node.layer);
  if (conv == nullptr && !std::holds_alternative<Linear>(node.layer)) return std::nullopt;
  const ValueLayout& input = layouts[static_cast<std::size_t>(node.inputs[0].node)];
  ConvProblem problem{.name = node.name,
                      .n_samples = n_samples * input.n_rows(),
                      .n_in = input.n_elements() / input.n_rows(),
                      .n_out = layouts[index].padded_channels};
  if (conv == nullptr) return problem;
  const Shape& image = network.shape(node.inputs[0]);
  problem.height = image[1];
  problem.width = image[2];
  problem.n_in = input.padded_channels;
  problem.kernel = conv->kernel;
  problem.stride = conv->stride;
  problem.padding = conv->padding;
  if (const std::optional<Fold> fold = fold_of(network, node)) {
    problem.height = static_cast<std::uint64_t>(fold->folded_size(static_cast<int>(image[1])));
    problem.width = static_cast<std::uint64_t>(fold->folded_size(static_cast<int>(image[2])));
    problem.n_in = Fold::n_channels;
    problem.kernel = static_cast<std::uint64_t>(fold->n_squares());
    problem.stride = 1;
    problem.padding = 0;
  }
  return problem;
}

}  // namespace

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
