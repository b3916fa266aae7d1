#include "nn/host/elements.hpp"
#include "nn/host/layers.hpp"
#include "nn/plan/fusion.hpp"

namespace lockstep::nn::host {
namespace {

/// Whether no other layer reads the input, and the node before no longer needs it either.
bool may_overwrite_input(const Planned& planned) {
  const Network& network = planned.builder.network;
  const Value input = planned.node.inputs[0];
  return !traits(node_of(network, input).layer).is_product && sole_reader(network, input) != nullptr;
}

/// The backward pass needs only the output, which the next layer keeps anyway.
class ReluLayer final : public NodeLayer {
 public:
  ReluLayer(const Planned& planned, bool is_in_place) : NodeLayer{planned} {
    output_ = is_in_place ? input_ : planned.builder.make(input_.desc);
  }

  void forward(PassContext&) override { rectify(storage_, input_.place, output_); }

  std::size_t n_gradients_taken() const override { return 2; }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    builder.use(output_);
    for (const Tensor& gradient : gradients) gradients_.push_back(builder.use(gradient).place);
    result_ = builder.may_overwrite(gradients[0]) ? gradients[0] : builder.make(output_.desc);
    return {result_};
  }

  void backward(PassContext&) override { relu_backward(storage_, output_, gradients_, result_); }

 private:
  std::vector<Place> gradients_{};
  Tensor result_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const Relu&) {
  return std::make_unique<ReluLayer>(planned, may_overwrite_input(planned));
}

}  // namespace lockstep::nn::host
