#include "nn/cuda/conv_problem.hpp"

namespace lockstep::nn::cuda {

std::uint64_t padded_channels(std::uint64_t n_channels, core::DType type, bool is_input) noexcept {
  if (is_input && n_channels <= 4 && type == core::DType::float16) return 4;
  return (n_channels + 7) / 8 * 8;
}

std::vector<ConvProblem> convolutions_of(const Network& network, std::uint64_t n_samples, core::DType type) {
  std::vector<ConvProblem> problems;
  for (const Node& node : network.nodes()) {
    const auto* const conv = std::get_if<Conv>(&node.layer);
    if (conv == nullptr) continue;
    const Node& source = network.nodes()[static_cast<std::size_t>(node.inputs.front().node)];
    const bool is_first = std::holds_alternative<Input>(source.layer);
    problems.push_back({.name = node.name,
                        .n_samples = n_samples,
                        .height = source.output[1],
                        .width = source.output[2],
                        .n_in = padded_channels(source.output[0], type, is_first),
                        .n_out = padded_channels(conv->n_out, type, false),
                        .kernel = conv->kernel,
                        .stride = conv->stride,
                        .padding = conv->padding,
                        .needs_input_gradient = !is_first});
  }
  return problems;
}

}  // namespace lockstep::nn::cuda
