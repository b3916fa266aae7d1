#include "nn/cuda/conv_problem.hpp"

#include <fmt/format.h>

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

}  // namespace lockstep::nn::cuda
