#include "core/error.hpp"
#include "nn/host/layers.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::memory;

class MaxPoolLayer final : public HostLayer {
 public:
  MaxPoolLayer(const Planned& planned, const MaxPool& layer) : node_{planned.node}, input_{planned.inputs[0]} {
    Builder& builder = planned.builder;
    window_ = window_of(layer);  // one beyond the far edges, if the stride does not divide the size, is cut off
    const Desc any{with_batch(builder.n, node_.output), builder.type, memory::format_tag::any};
    described_ = describe_max_pool(builder.engine, input_.desc, any, window_);
    core::require(static_cast<bool>(described_), "oneDNN has this max pooling");
    output_ = builder.make(described_.dst_desc());
    indices_ = builder.make(described_.workspace_desc());
    forward_ = builder.primitive(described_,
                                 {{DNNL_ARG_SRC, input_}, {DNNL_ARG_DST, output_}, {DNNL_ARG_WORKSPACE, indices_}});
  }

  void forward(PassContext& pass) override { forward_.run(pass.run); }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    if (!builder.needs_gradient(node_.inputs[0])) return {Tensor{}};
    const auto described = describe_max_pool_backward(builder.engine, input_.desc, output_.desc, window_, described_);
    const Tensor result = builder.make(input_.desc);
    backward_.push_back(builder.primitive(
        described, {{DNNL_ARG_DIFF_DST, gradients[0]}, {DNNL_ARG_WORKSPACE, indices_}, {DNNL_ARG_DIFF_SRC, result}}));
    return {result};
  }

  void backward(PassContext& pass) override { run_all(backward_, pass.run); }

 private:
  const Node& node_;
  Tensor input_;
  Window window_{};
  dnnl::pooling_forward::primitive_desc described_{};
  Tensor indices_{};  ///< of each window's maximum
  Primitive forward_{};
  std::vector<Primitive> backward_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const MaxPool& layer) {
  return make_by_onednn<MaxPoolLayer>(planned, layer);
}

}  // namespace lockstep::nn::host
