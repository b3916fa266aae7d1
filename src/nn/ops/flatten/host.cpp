#include <algorithm>

#include "nn/host/layers.hpp"

namespace lockstep::nn::host {
namespace {

/// Whether all readers of `node` accept any order of a sample's elements: linear layers, and layers that pass elements
/// on.
bool keeps_layout(const Network& network, std::size_t node) {
  const auto& nodes = network.nodes();
  bool is_read = false;
  for (std::size_t i = node + 1; i < nodes.size(); ++i) {
    const auto reads = [&](Value v) { return static_cast<std::size_t>(v.node) == node; };
    if (std::none_of(nodes[i].inputs.begin(), nodes[i].inputs.end(), reads)) continue;
    is_read = true;
    const Layer& layer = nodes[i].layer;
    const bool passes_on = traits(layer).is_elementwise && nodes[i].inputs.size() == 1;
    if (!std::holds_alternative<Linear>(layer) && !(passes_on && keeps_layout(network, i))) return false;
  }
  return is_read;
}

/// Does nothing before linear layers, which take images in their layout; otherwise reorders.
class FlattenLayer final : public NodeLayer {
 public:
  explicit FlattenLayer(const Planned& planned)
      : NodeLayer{planned}, plain_{plain_desc(dims_of(input_.desc), type_of(input_.desc))} {
    Builder& builder = planned.builder;
    output_ = input_;
    if (keeps_layout(builder.network, planned.index)) return;
    output_.place = builder.reordered(input_, plain_, forward_).place;
    output_.desc = builder.samples(planned.node.output);
    is_flat_ = true;
  }

  void forward(PassContext& pass) override { run_all(forward_, pass.run); }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    if (!is_flat_) return {builder.use(gradients[0])};
    return {builder.reordered({plain_, builder.use(gradients[0]).place}, input_.desc, backward_)};
  }

  void backward(PassContext& pass) override { run_all(backward_, pass.run); }

 private:
  Desc plain_;
  bool is_flat_ = false;
  std::vector<Primitive> forward_{};
  std::vector<Primitive> backward_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const Flatten&) {
  return std::make_unique<FlattenLayer>(planned);
}

}  // namespace lockstep::nn::host
