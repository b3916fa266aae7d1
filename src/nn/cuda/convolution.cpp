#include "nn/cuda/convolution.hpp"

#include <algorithm>

namespace lockstep::nn::cuda {

bool needs_gradient(const Network& network, Value value) {
  const Node& node = network.nodes()[static_cast<std::size_t>(value.node)];
  return !node.parameters.empty() ||
         std::ranges::any_of(node.inputs, [&](Value input) { return needs_gradient(network, input); });
}

void choose_products(const Network& network, core::DType type, const ExecutorOptions& options, Convolutions& by) {
  const std::vector<ValueLayout> layouts = layouts_of(network);
  for (std::size_t i = 0; i < network.nodes().size(); ++i) {
    const std::optional<ConvProblem> problem = problem_of(network, i, layouts, options.max_batch);
    if (!problem) continue;
    by.choose(*problem, ConvPass::forward, type, options);
    by.choose(*problem, ConvPass::weight_gradient, type, options);
    if (needs_gradient(network, network.nodes()[i].inputs[0]))
      by.choose(*problem, ConvPass::input_gradient, type, options);
    by.keep_choices();  // what has taken time is not lost if this is as far as it gets
    if (options.on_progress) options.on_progress();
  }
}

}  // namespace lockstep::nn::cuda
