// The layers of a network on a device, planned in the order of a pass; what layers of all devices have in common.
// Invariant: a gradient keeps its memory until the node that takes it is planned. If a value has several readers, their
// gradients are added in the order in which they arrive.
// Used by the programs of nn/host and nn/cuda, which run what is planned here.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "nn/plan/pass_plan.hpp"

namespace lockstep::nn {

/// The interface of a layer: planned once for a batch size, then run forward and backward.
template <class Builder, class Tensor, class Pass>
class PlannedLayer {
 public:
  virtual ~PlannedLayer() = default;

  [[nodiscard]] const Tensor& output() const noexcept { return output_; }
  virtual void forward(Pass& pass) = 0;

  /// The most gradients of its output that it accepts; more are added up beforehand.
  [[nodiscard]] virtual std::size_t n_gradients_taken() const { return 1; }
  /// Plans the backward pass, if its node needs a gradient: it has parameters, or one of its inputs needs a gradient.
  /// Returns the gradients of its inputs; those that need none may be empty.
  [[nodiscard]] virtual std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) = 0;
  virtual void backward(Pass& pass) = 0;

 protected:
  Tensor output_{};
};

/// The arguments from which a layer is made.
template <class Builder, class Tensor>
struct PlannedNode {
  Builder& builder;
  const Node& node;
  std::size_t index;  ///< of the node
  std::vector<Tensor> inputs;
};

template <class Tensor>
struct GradientSum {
  Tensor a{}, b{}, out{};
};

template <class Layer, class Tensor>
struct LayerStep {
  std::unique_ptr<Layer> layer{};
  std::vector<GradientSum<Tensor>> sums{};  ///< computed in order before the layer's backward pass
  std::vector<Tensor> gradients{};          ///< of its output, which its backward pass reads
};

/// `make`: of PlannedNode. Ends at the time of the loss.
template <class Builder, class Layer, class Tensor, class Make>
void plan_forward(Builder& builder, std::vector<LayerStep<Layer, Tensor>>& steps, const Make& make) {
  const std::vector<Node>& nodes = builder.network.nodes();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    builder.time = builder.plan.time_of_forward(i);
    PlannedNode<Builder, Tensor> planned{builder, nodes[i], i, {}};
    for (const Value input : nodes[i].inputs)
      planned.inputs.push_back(steps[static_cast<std::size_t>(input.node)].layer->output());
    steps[i].layer = make(planned);
    if (builder.options.on_progress) builder.options.on_progress();
  }
  builder.time = builder.plan.time_of_loss();
}

/// Calls these members of the builder: begin_backward(step) before each layer; await(gradient) when a layer returns a
/// gradient; take(gradient) when the node that takes it is planned; add_up(a, b, node) for the place of a sum.
template <class Builder, class Layer, class Tensor>
void plan_backward(Builder& builder, std::vector<LayerStep<Layer, Tensor>>& steps, const Tensor& of_loss) {
  std::vector<std::vector<Tensor>> results(steps.size());  // gradients of the inputs of nodes
  builder.await(of_loss);
  for (const BackwardStep& step : builder.plan.backward) {
    builder.time = builder.plan.time_of_backward(step.node);
    builder.begin_backward(step);
    if (builder.options.on_progress) builder.options.on_progress();
    LayerStep<Layer, Tensor>& here = steps[step.node];
    if (step.readers.empty()) here.gradients = {of_loss};
    for (const Reader& reader : step.readers) here.gradients.push_back(results[reader.node][reader.input]);
    for (const Tensor& gradient : here.gradients) builder.take(gradient);
    while (here.gradients.size() > here.layer->n_gradients_taken()) {
      const Tensor a = here.gradients[0], b = here.gradients[1];
      here.gradients.erase(here.gradients.begin());
      here.gradients[0] = builder.add_up(a, b, step.node);
      here.sums.push_back({a, b, here.gradients[0]});
    }
    results[step.node] = here.layer->plan_backward(builder, here.gradients);
    const std::vector<Value>& inputs = builder.network.nodes()[step.node].inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (builder.needs_gradient(inputs[k])) builder.await(results[step.node][k]);
  }
}

}  // namespace lockstep::nn
