#include "nn/plan/pass_plan.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "nn/plan/fusion.hpp"

namespace lockstep::nn {
namespace {

/// The nodes that read a parameter: the first and the last.
struct Span {
  std::size_t first = 0, last = 0;
};

std::vector<Span> readers_of_parameters(const Network& network) {
  const std::vector<Node>& nodes = network.nodes();
  std::vector<Span> spans(network.parameters().size(), Span{nodes.size(), 0});
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const int parameter : nodes[i].parameters) {
      Span& span = spans[static_cast<std::size_t>(parameter)];
      span = {std::min(span.first, i), i};
    }
  return spans;
}

}  // namespace

bool PassPlan::adds(const BackwardStep& step, int parameter) const noexcept {
  return std::ranges::none_of(step.written, [&](std::size_t at) { return parameters[at].parameter == parameter; });
}

PassPlan plan_pass(const Network& network) {
  const std::vector<Node>& nodes = network.nodes();
  const std::vector<Span> spans = readers_of_parameters(network);
  std::vector<std::size_t> places(spans.size());  // of parameters in the plan
  PassPlan plan;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    plan.needs_gradient.push_back(needs_gradient(network, {static_cast<int>(i)}));
  std::vector<std::vector<Reader>> readers(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!plan.needs_gradient[i]) continue;
    core::require(i + 1 == nodes.size() || !readers[i].empty(), "the loss depends on every node with parameters");
    for (std::size_t k = 0; k < nodes[i].inputs.size(); ++k)
      readers[static_cast<std::size_t>(nodes[i].inputs[k].node)].push_back({i, k});
    const std::size_t n_before = plan.parameters.size();
    for (const int parameter : nodes[i].parameters) {
      const auto p = static_cast<std::size_t>(parameter);
      if (spans[p].first != i) continue;
      places[p] = plan.parameters.size();
      plan.parameters.push_back({parameter, i});
    }
    plan.backward.push_back({i, std::move(readers[i]), {n_before, plan.parameters.size() - n_before}, {}});
  }
  for (BackwardStep& step : plan.backward)
    for (const int parameter : nodes[step.node].parameters) {
      const auto p = static_cast<std::size_t>(parameter);
      if (spans[p].last == step.node) step.written.push_back(places[p]);
    }
  return plan;
}

}  // namespace lockstep::nn
