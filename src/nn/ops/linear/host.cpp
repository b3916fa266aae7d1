#include "core/error.hpp"
#include "nn/host/elements.hpp"
#include "nn/host/layers.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::memory;

/// A matrix of `rows` x `columns` elements, one row after the other.
Desc matrix(memory::dim rows, memory::dim columns, memory::data_type type) {
  return {{rows, columns}, type, memory::format_tag::ab};
}

/// A rows x columns view of the transpose of such a matrix.
Desc transposed(memory::dim rows, memory::dim columns, memory::data_type type) {
  return {{rows, columns}, type, memory::format_tag::ba};
}

/// The layout of weights whose rows have the order of a sample's elements.
Desc weights_like(const Desc& input, std::uint64_t n_out) {
  Dims dims = dims_of(input);
  dims[0] = static_cast<memory::dim>(n_out);
  if (dims.size() == 2) return plain_desc(dims);
  using Tag = memory::format_tag;
  const ImageLayout image = image_layout(input);
  Tag tag = Tag::acdb;
  if (image.block == 1) tag = Tag::abcd;
  if (image.block == 4) tag = Tag::aBcd4b;
  if (image.block == 8) tag = Tag::aBcd8b;
  if (image.block == 16) tag = Tag::aBcd16b;
  const Desc desc{dims, memory::data_type::f32, tag};
  core::require(n_physical(desc) / n_out == n_physical(input) / static_cast<std::size_t>(dims_of(input)[0]),
                "weights of a linear layer have its input's layout");
  return desc;
}

/// Three matrix products on the input in its layout: weights are {outputs, elements of a row}, including padding.
/// The end of a network stays float32, like its loss.
class LinearLayer final : public NodeLayer {
 public:
  LinearLayer(const Planned& planned, const Linear& layer) : NodeLayer{planned}, has_bias_{layer.has_bias} {
    Builder& builder = planned.builder;
    type_ = builder.type;
    n_ = dims_of(input_.desc)[0];
    n_out_ = static_cast<memory::dim>(layer.n_out);
    n_in_ = static_cast<memory::dim>(n_physical(input_.desc)) / n_;
    builder.parameters.choose(node_.parameters[0], weights_like(input_.desc, layer.n_out));
    if (has_bias_) builder.parameters.choose(node_.parameters[1], plain_desc({n_out_}));
    weights_ = {matrix(n_out_, n_in_, type_), builder.parameter(node_.parameters[0]).place};
    master_ = weights_.place;
    if (type_ != memory::data_type::f32) weights_ = builder.make(weights_.desc);
    const bool is_last = builder.is_read_by_loss(planned.index);
    output_ = builder.make(matrix(n_, n_out_, is_last ? memory::data_type::f32 : type_));
    plan_forward(builder);
  }

  void forward(PassContext& pass) override {
    if (type_ != memory::data_type::f32) round(storage_, master_, weights_);
    forward_.run(pass.run);
  }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    gradient_ = builder.use(gradients[0]);
    Tensor of_weights{matrix(n_out_, n_in_, memory::data_type::f32), builder.gradient(node_.parameters[0]).place};
    if (builder.adds_to_gradient(node_.parameters[0])) {
      sum_ = of_weights;
      term_ = of_weights = builder.make(of_weights.desc);
    }
    plan_product(builder, {transposed(n_out_, n_, type_), gradient_.place}, {matrix(n_, n_in_, type_), input_.place},
                 of_weights);
    if (has_bias_) bias_gradient_ = builder.gradient(node_.parameters[1]).place;
    if (!builder.needs_gradient(node_.inputs[0])) return {Tensor{}};
    const Tensor result = builder.make(input_.desc);
    plan_product(builder, {matrix(n_, n_out_, type_), gradient_.place}, weights_,
                 {matrix(n_, n_in_, type_), result.place});
    return {result};
  }

  void backward(PassContext& pass) override {
    run_all(backward_, pass.run);
    if (sum_) {
      for_elements(*sum_, [&](std::size_t begin, std::size_t end) {
        loops().floats.add_to(storage_.at<float>(sum_->place) + begin, storage_.at<const float>(term_.place) + begin,
                              end - begin);
      });
    }
    if (!has_bias_) return;
    with_type(gradient_, [&]<class T>(T) {
      loops().of<T>().sum_rows(storage_.at<const T>(gradient_.place), static_cast<std::size_t>(n_),
                               static_cast<std::size_t>(n_out_), storage_.at<float>(bias_gradient_));
    });
  }

 private:
  void plan_forward(Builder& builder) {
    const Tensor a{matrix(n_, n_in_, type_), input_.place};
    const Tensor b{transposed(n_in_, n_out_, type_), weights_.place};
    Tensor bias;
    if (has_bias_) bias = {matrix(1, n_out_, memory::data_type::f32), builder.parameter(node_.parameters[1]).place};
    const auto described = describe_matmul(builder.engine, a.desc, b.desc, bias.desc, output_.desc);
    forward_ = builder.primitive(
        described, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, output_}});
  }

  void plan_product(Builder& builder, const Tensor& a, const Tensor& b, const Tensor& result) {
    const auto described = describe_matmul(builder.engine, a.desc, b.desc, {}, result.desc);
    backward_.push_back(
        builder.primitive(described, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, result}}));
  }

  bool has_bias_;
  memory::data_type type_{};
  memory::dim n_ = 0, n_in_ = 0, n_out_ = 0;  ///< n_: rows of all samples
  Place master_{};                            ///< the parameter
  Tensor weights_{};                          ///< what the products read: the parameter, or a rounded copy
  Tensor gradient_{};
  std::optional<Tensor> sum_{};  ///< of the weights' gradient, if other layers share them: this layer adds a term
  Tensor term_{};
  Place bias_gradient_{};
  Primitive forward_{};
  std::vector<Primitive> backward_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const Linear& layer) {
  return make_by_onednn<LinearLayer>(planned, layer);
}

}  // namespace lockstep::nn::host
