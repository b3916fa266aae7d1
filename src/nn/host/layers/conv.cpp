#include <cstring>

#include "core/error.hpp"
#include "nn/host/kernel.hpp"
#include "nn/host/layers/conv_weights.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::memory;

Desc any_layout(const Dims& dims) { return {dims, memory::data_type::f32, memory::format_tag::any}; }

Window window_of(const Conv& layer) {
  const auto kernel = static_cast<memory::dim>(layer.kernel), stride = static_cast<memory::dim>(layer.stride);
  const auto padding = static_cast<memory::dim>(layer.padding);
  return {{kernel, kernel}, {stride, stride}, {padding, padding}, {padding, padding}};
}

/// What `describe(layout)` gives for weights of that layout, if it is as fast as with a layout of its own choice.
template <class Describe, class LayoutOf>
auto prefer_layout(const Desc& layout, const Describe& describe, const LayoutOf& layout_of) {
  auto free = describe(any_layout(dims_of(layout)));
  core::require(static_cast<bool>(free), "oneDNN has this convolution");
  if (layout_of(free) == layout) return free;
  auto same = describe(layout);
  const bool is_as_fast = same && std::strcmp(same.impl_info_str(), free.impl_info_str()) == 0;
  return is_as_fast ? same : free;
}

class ConvKernel final : public Kernel {
 public:
  ConvKernel(const Planned& planned, const Conv& layer)
      : node_{planned.node}, storage_{planned.builder.storage}, window_{window_of(layer)}, input_{planned.inputs[0]} {
    Builder& builder = planned.builder;
    const Desc wanted_src = any_layout(dims_of(input_.desc)),
               wanted_dst = any_layout(with_batch(builder.n, node_.output));
    if (layer.has_bias) bias_ = plain_desc({static_cast<memory::dim>(layer.n_out)});
    const auto describe = [&](const Desc& weights) {
      return describe_conv(builder.engine, wanted_src, weights, bias_, wanted_dst, window_);
    };
    choose_layouts(builder, describe);
    const Tensor weights = builder.parameter(node_.parameters[0]);
    described_ = prefer_layout(weights.desc, describe, [](const auto& d) { return d.weights_desc(); });
    src_ = builder.reordered(input_, described_.src_desc(), forward_);
    output_ = builder.make(described_.dst_desc());
    run_forward(builder, weights);
  }

  void forward(Call& call) override { run_all(forward_, call.run); }

  std::vector<std::optional<Tensor>> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    const Tensor gradient = builder.use(gradients[0]);
    plan_weights(builder, gradient);
    if (!builder.needs_gradient(node_.inputs[0])) return {std::nullopt};
    return {plan_data(builder, gradient)};
  }

  void backward(Call& call) override {
    run_all(of_weights_, call.run);
    if (transpose_) transpose_->run(storage_);
    run_all(of_data_, call.run);
  }

 private:
  /// The weights' layout in the arenas is what their gradient is computed in.
  template <class Describe>
  void choose_layouts(Builder& builder, const Describe& describe) {
    const int weights = node_.parameters[0];
    if (builder.parameters.find(weights)) return;
    const Shape& shape = builder.network.parameters()[static_cast<std::size_t>(weights)].shape;
    const Desc any = any_layout(Dims(shape.begin(), shape.end()));
    const auto forward = describe(any);
    core::require(static_cast<bool>(forward), "oneDNN has this convolution");
    const auto backward =
        describe_conv_weights(builder.engine, forward.src_desc(), any, bias_, forward.dst_desc(), window_, forward);
    core::require(static_cast<bool>(backward), "oneDNN has this convolution's gradient");
    builder.parameters.set(weights, backward.diff_weights_desc());
    if (!bias_.is_zero()) builder.parameters.set(node_.parameters[1], bias_);
  }

  void run_forward(Builder& builder, const Tensor& weights) {
    const Tensor used = builder.reordered(weights, described_.weights_desc(), forward_);
    if (bias_.is_zero()) {
      forward_.push_back(
          builder.primitive(described_, {{DNNL_ARG_SRC, src_}, {DNNL_ARG_WEIGHTS, used}, {DNNL_ARG_DST, output_}}));
    } else {
      forward_.push_back(builder.primitive(described_, {{DNNL_ARG_SRC, src_},
                                                        {DNNL_ARG_WEIGHTS, used},
                                                        {DNNL_ARG_BIAS, builder.parameter(node_.parameters[1])},
                                                        {DNNL_ARG_DST, output_}}));
    }
  }

  void plan_weights(Builder& builder, const Tensor& gradient) {
    const Tensor target = builder.gradient(node_.parameters[0]);
    const auto described = prefer_layout(
        target.desc,
        [&](const Desc& weights) {
          return describe_conv_weights(builder.engine, src_.desc, weights, bias_, gradient.desc, window_, described_);
        },
        [](const auto& d) { return d.diff_weights_desc(); });
    const bool is_direct = described.diff_weights_desc() == target.desc;
    const Tensor computed = is_direct ? target : builder.make(described.diff_weights_desc());
    if (bias_.is_zero()) {
      of_weights_.push_back(builder.primitive(
          described, {{DNNL_ARG_SRC, src_}, {DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_DIFF_WEIGHTS, computed}}));
    } else {
      of_weights_.push_back(
          builder.primitive(described, {{DNNL_ARG_SRC, src_},
                                        {DNNL_ARG_DIFF_DST, gradient},
                                        {DNNL_ARG_DIFF_WEIGHTS, computed},
                                        {DNNL_ARG_DIFF_BIAS, builder.gradient(node_.parameters[1])}}));
    }
    if (!is_direct) builder.reorder(computed, target, of_weights_);
  }

  Tensor plan_data(Builder& builder, const Tensor& gradient) {
    const Tensor weights = builder.parameter(node_.parameters[0]);
    const auto described = prefer_layout(
        weights.desc,
        [&](const Desc& layout) {
          return describe_conv_data(builder.engine, src_.desc, layout, gradient.desc, window_, described_);
        },
        [](const auto& d) { return d.weights_desc(); });
    const Tensor used = lay_out(builder, weights, described.weights_desc());
    const Tensor result = builder.make(src_.desc);
    of_data_.push_back(builder.primitive(
        described, {{DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_WEIGHTS, used}, {DNNL_ARG_DIFF_SRC, result}}));
    return builder.reordered(result, input_.desc, of_data_);
  }

  /// On AVX-512 the gradient of the input always wants weights transposed block by block.
  Tensor lay_out(Builder& builder, const Tensor& weights, const Desc& wanted) {
    transpose_ = BlockTranspose::find(weights, wanted);
    if (!transpose_) return builder.reordered(weights, wanted, of_data_);
    const Tensor copy = builder.make(wanted);
    transpose_->set_target(copy.place);
    return copy;
  }

  const Node& node_;
  const Storage& storage_;
  Window window_;
  Tensor input_;
  Tensor src_{};  ///< the input as the primitives take it
  Desc bias_{};
  dnnl::convolution_forward::primitive_desc described_{};
  std::vector<Primitive> forward_{};
  std::vector<Primitive> of_weights_{}, of_data_{};
  std::optional<BlockTranspose> transpose_{};
};

}  // namespace

std::unique_ptr<Kernel> make_conv(const Planned& planned, const Conv& layer) {
  return std::make_unique<ConvKernel>(planned, layer);
}

}  // namespace lockstep::nn::host
