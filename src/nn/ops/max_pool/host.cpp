#include "core/error.hpp"
#include "nn/host/layers.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::memory;

class MaxPoolLayer final : public NodeLayer {
 public:
  MaxPoolLayer(const Planned& planned, const MaxPool& layer) : NodeLayer{planned} {
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
    const auto described = describe_max_pool_backward(builder.engine, input_.desc, output_.desc, window_, described_);
    const Tensor result = builder.make(input_.desc);
    backward_ = builder.primitive(
        described, {{DNNL_ARG_DIFF_DST, gradients[0]}, {DNNL_ARG_WORKSPACE, indices_}, {DNNL_ARG_DIFF_SRC, result}});
    return {result};
  }

  void backward(PassContext& pass) override { backward_.run(pass.run); }

 private:
  Window window_{};
  MaxPoolDesc described_{};
  Tensor indices_{};  ///< of each window's maximum
  Primitive forward_{}, backward_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const MaxPool& layer) {
  return make_by_onednn<MaxPoolLayer>(planned, layer);
}

}  // namespace lockstep::nn::host
