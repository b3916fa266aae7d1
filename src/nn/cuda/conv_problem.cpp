#include "nn/cuda/conv_problem.hpp"

#include <fmt/format.h>

namespace lockstep::nn::cuda {

std::string describe(const ConvProblem& p) {
  return fmt::format("{}x{}x{}x{} by {}x{}x{}/{}+{}", p.n_samples, p.height, p.width, p.n_in, p.n_out, p.kernel,
                     p.kernel, p.stride, p.padding);
}

std::optional<ConvProblem> problem_of(const Network& network, std::size_t index, std::span<const ValueLayout> layouts,
                                      std::uint64_t n_samples) {
  const Node& node = network.nodes()[index];
  const auto* const conv = std::get_if<Conv>(&node.layer);
  if (conv == nullptr && !std::holds_alternative<Linear>(node.layer)) return std::nullopt;
  const ValueLayout& input = layouts[static_cast<std::size_t>(node.inputs[0].node)];
  ConvProblem problem{
      .name = node.name, .n_samples = n_samples, .n_in = input.n_elements(), .n_out = layouts[index].padded_channels};
  if (conv == nullptr) return problem;
  const Shape& image = network.shape(node.inputs[0]);
  problem.height = image[1];
  problem.width = image[2];
  problem.n_in = input.padded_channels;
  problem.kernel = conv->kernel;
  problem.stride = conv->stride;
  problem.padding = conv->padding;
  return problem;
}

}  // namespace lockstep::nn::cuda
