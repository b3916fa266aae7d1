#include <cstring>

#include "core/error.hpp"
#include "nn/host/layers.hpp"
#include "nn/ops/conv/host_columns.hpp"
#include "nn/ops/conv/host_products.hpp"
#include "nn/ops/conv/host_weights.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::memory;

Desc any_layout(const Dims& dims, memory::data_type type) { return {dims, type, memory::format_tag::any}; }

/// Returns describe(layout) for weights of that layout and type, if it is as fast as with a layout of oneDNN's choice;
/// else the latter.
template <class Describe, class LayoutOf>
auto prefer_layout(const Desc& layout, memory::data_type type, const Describe& describe, const LayoutOf& layout_of) {
  auto free = describe(any_layout(dims_of(layout), type));
  core::require(static_cast<bool>(free), "oneDNN has this convolution");
  if (layout_of(free) == layout || type_of(layout) != type) return free;
  auto same = describe(layout);
  const bool is_as_fast = same && std::strcmp(same.impl_info_str(), free.impl_info_str()) == 0;
  return is_as_fast ? same : free;
}

class ConvLayer final : public NodeLayer {
 public:
  ConvLayer(const Planned& planned, const Conv& layer) : NodeLayer{planned}, window_{window_of(layer)} {
    Builder& builder = planned.builder;
    if (layer.has_bias) bias_ = plain_desc({static_cast<memory::dim>(layer.n_out)});
    const Layouts chosen = choose_layouts(builder);
    builder.parameters.choose(node_.parameters[0], chosen.of_weights);
    if (layer.has_bias) builder.parameters.choose(node_.parameters[1], bias_);
    const Tensor weights = builder.parameter(node_.parameters[0]);
    const auto describe = [&](const Desc& layout) {
      return describe_conv(builder.engine, chosen.src, layout, bias_, chosen.dst, window_);
    };
    described_ = prefer_layout(weights.desc, builder.type, describe, [](const auto& d) { return d.weights_desc(); });
    src_ = builder.reordered(input_, described_.src_desc(), forward_);
    output_ = builder.make(described_.dst_desc());
    run_forward(builder, weights);
  }

  void forward(PassContext& pass) override {
    if (copy_) copy_->run(storage_);
    run_all(forward_, pass.run);
  }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    const Tensor gradient = builder.use(gradients[0]);
    plan_weights(builder, gradient);
    if (!builder.needs_gradient(node_.inputs[0])) return {Tensor{}};
    return {plan_data(builder, gradient)};
  }

  void backward(PassContext& pass) override {
    if (columns_)
      columns_->gather(storage_.at<const std::byte>(src_.place), storage_.at<const std::byte>(gradient_),
                       storage_.at<std::byte>(column_place_), storage_.at<std::byte>(pixel_place_));
    run_all(of_weights_, pass.run);
    if (data_copy_) data_copy_->run(storage_);
    run_all(of_data_, pass.run);
  }

 private:
  struct Layouts {
    Desc src, dst, of_weights;  ///< of_weights: the layout in the arenas, in which their gradient is computed
    int n_reference = 0;        ///< passes for which oneDNN has only reference code
  };

  /// Returns the first layouts in which no pass runs reference code. Tries oneDNN's choice for the forward pass, which
  /// may have only reference code backward; then channels last; then channels first.
  Layouts choose_layouts(Builder& builder) const {
    std::optional<Layouts> best;
    for (const auto tag : {memory::format_tag::any, memory::format_tag::acdb, memory::format_tag::abcd}) {
      const auto found = passes_with(builder, tag);
      if (found && (!best || found->n_reference < best->n_reference)) best = found;
      if (best && best->n_reference == 0) break;
    }
    core::require(best.has_value(), "oneDNN has this convolution and its gradients");
    return *best;
  }

  std::optional<Layouts> passes_with(Builder& builder, memory::format_tag tag) const {
    const Shape& shape = builder.network.parameters()[static_cast<std::size_t>(node_.parameters[0])].shape;
    const Dims dims(shape.begin(), shape.end());
    const Desc weights = any_layout(dims, builder.type);
    const auto forward = describe_conv(builder.engine, {dims_of(input_.desc), builder.type, tag}, weights, bias_,
                                       {with_batch(builder.n, node_.output), builder.type, tag}, window_);
    if (!forward) return std::nullopt;
    const Desc src = forward.src_desc(), dst = forward.dst_desc();
    const auto of_weights = describe_conv_weights(builder.engine, src, any_layout(dims, memory::data_type::f32), bias_,
                                                  dst, window_, forward);
    if (!of_weights) return std::nullopt;
    Layouts found{src, dst, of_weights.diff_weights_desc(), is_reference(forward) + is_reference(of_weights)};
    if (!builder.needs_gradient(node_.inputs[0])) return found;
    const auto of_data = describe_conv_data(builder.engine, src, weights, dst, window_, forward);
    if (!of_data) return std::nullopt;
    found.n_reference += is_reference(of_data);
    return found;
  }

  void run_forward(Builder& builder, const Tensor& weights) {
    const Tensor used = lay_out(builder, weights, described_.weights_desc(), copy_, forward_);
    const Tensor bias = bias_.is_zero() ? Tensor{} : builder.parameter(node_.parameters[1]);
    forward_.push_back(builder.primitive(
        described_, {{DNNL_ARG_SRC, src_}, {DNNL_ARG_WEIGHTS, used}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, output_}}));
  }

  void plan_weights(Builder& builder, const Tensor& gradient) {
    const Tensor target = builder.gradient(node_.parameters[0]);
    const auto described = prefer_layout(
        target.desc, memory::data_type::f32,
        [&](const Desc& weights) {
          return describe_conv_weights(builder.engine, src_.desc, weights, bias_, gradient.desc, window_, described_);
        },
        [](const auto& d) { return d.diff_weights_desc(); });
    if (is_better_by_columns(builder, gradient, target, described)) return plan_columns(builder, gradient, target);
    const bool is_direct = described.diff_weights_desc() == target.desc;
    const Tensor computed = is_direct ? target : builder.make(described.diff_weights_desc());
    const Tensor of_bias = bias_.is_zero() ? Tensor{} : builder.gradient(node_.parameters[1]);
    of_weights_.push_back(builder.primitive(described, {{DNNL_ARG_SRC, src_},
                                                        {DNNL_ARG_DIFF_DST, gradient},
                                                        {DNNL_ARG_DIFF_WEIGHTS, computed},
                                                        {DNNL_ARG_DIFF_BIAS, of_bias}}));
    if (!is_direct) builder.reorder(computed, target, of_weights_);
  }

  /// Decided by timing when the first program is planned: the same for all ranks and batches.
  bool is_better_by_columns(Builder& builder, const Tensor& gradient, const Tensor& target,
                            const ConvColumns::Gradient& own) {
    if (builder.options.is_deterministic || !bias_.is_zero()) return false;
    columns_ = ConvColumns::find(builder.engine, src_.desc, target.desc, gradient.desc, window_);
    if (!columns_) return false;
    Dims key = dims_of(src_.desc);
    key[0] = window_.strides[0];
    const Dims weights = dims_of(target.desc);
    key.insert(key.end(), weights.begin(), weights.end());
    const bool is_first_program = builder.parameters.slots().all().empty();
    if (is_first_program && !builder.choices.contains(key)) {
      const auto [own_s, columns_s] = columns_->measure(builder.engine, own);
      double times[] = {own_s, columns_s};
      if (builder.options.agree) builder.options.agree(times);
      builder.choices[key] = times[1] < 0.95 * times[0];
    }
    const auto found = builder.choices.find(key);
    if (found == builder.choices.end() || !found->second) columns_.reset();
    return columns_.has_value();
  }

  void plan_columns(Builder& builder, const Tensor& gradient, const Tensor& target) {
    const ConvColumns::Gradient& described = columns_->described();
    const Tensor columns = builder.make(described.src_desc()), pixels = builder.make(described.diff_dst_desc());
    builder.use(src_);
    gradient_ = gradient.place;
    column_place_ = columns.place;
    pixel_place_ = pixels.place;
    of_weights_.push_back(
        builder.primitive(described, {{DNNL_ARG_SRC, columns},
                                      {DNNL_ARG_DIFF_DST, pixels},
                                      {DNNL_ARG_DIFF_WEIGHTS, {described.diff_weights_desc(), target.place}}}));
  }

  Tensor plan_data(Builder& builder, const Tensor& gradient) {
    const Tensor weights = builder.parameter(node_.parameters[0]);
    const auto described = prefer_layout(
        weights.desc, builder.type,
        [&](const Desc& layout) {
          return describe_conv_data(builder.engine, src_.desc, layout, gradient.desc, window_, described_);
        },
        [](const auto& d) { return d.weights_desc(); });
    const Tensor used = lay_out(builder, weights, described.weights_desc(), data_copy_, of_data_);
    const Tensor result = builder.make(src_.desc);
    of_data_.push_back(builder.primitive(
        described, {{DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_WEIGHTS, used}, {DNNL_ARG_DIFF_SRC, result}}));
    return builder.reordered(result, input_.desc, of_data_);
  }

  /// Returns `weights` in a primitive's layout. On AVX-512 that mostly differs from the arena's: see WeightsCopy.
  static Tensor lay_out(Builder& builder, const Tensor& weights, const Desc& wanted, std::optional<WeightsCopy>& copy,
                        std::vector<Primitive>& primitives) {
    copy = WeightsCopy::find(weights, wanted);
    if (!copy) return builder.reordered(weights, wanted, primitives);
    const Tensor target = builder.make(wanted);
    copy->set_target(target.place);
    return target;
  }

  Window window_;
  Tensor src_{};  ///< the input in the layout of the primitives
  Desc bias_{};
  ConvDesc described_{};
  std::vector<Primitive> forward_{};
  std::vector<Primitive> of_weights_{}, of_data_{};
  std::optional<ConvColumns> columns_{};
  Place gradient_{}, column_place_{}, pixel_place_{};
  std::optional<WeightsCopy> copy_{}, data_copy_{};  ///< for the output, and for the gradient of the input
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const Conv& layer) {
  return make_by_onednn(planned, [&](const Planned& p) -> std::unique_ptr<HostLayer> {
    if (is_for_products(p, layer)) return make_conv_products(p, layer);
    return std::make_unique<ConvLayer>(p, layer);
  });
}

}  // namespace lockstep::nn::host
