#include "nn/plan/pass_plan.hpp"

#include <utility>

#include "core/error.hpp"
#include "nn/plan/fusion.hpp"

namespace lockstep::nn {

PassPlan plan_pass(const Network& network) {
  const std::vector<Node>& nodes = network.nodes();
  PassPlan plan;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    plan.needs_gradient.push_back(needs_gradient(network, {static_cast<int>(i)}));
  std::vector<std::vector<Reader>> readers(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!plan.needs_gradient[i]) continue;
    core::require(i + 1 == nodes.size() || !readers[i].empty(), "the loss depends on every node with parameters");
    for (std::size_t k = 0; k < nodes[i].inputs.size(); ++k)
      readers[static_cast<std::size_t>(nodes[i].inputs[k].node)].push_back({i, k});
    plan.backward.push_back({i, std::move(readers[i]), {plan.parameters.size(), nodes[i].parameters.size()}});
    for (const int parameter : nodes[i].parameters) plan.parameters.push_back({parameter, i});
  }
  return plan;
}

}  // namespace lockstep::nn
