#include "core/error.hpp"
#include "nn/host/kernel.hpp"
#include "nn/host/loops.hpp"
#include "nn/host/parallel.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::memory;

/// A matrix of `rows` x `columns` elements, one row after the other.
Desc matrix(memory::dim rows, memory::dim columns) {
  return {{rows, columns}, memory::data_type::f32, memory::format_tag::ab};
}

/// The transpose of such a matrix, rows x columns itself.
Desc transposed(memory::dim rows, memory::dim columns) {
  return {{rows, columns}, memory::data_type::f32, memory::format_tag::ba};
}

/// How weights lie whose rows follow the elements of a sample, whatever order those have.
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
  core::require(n_floats(desc) / n_out == n_floats(input) / static_cast<std::size_t>(dims_of(input)[0]),
                "weights of a linear layer lie as its input");
  return desc;
}

/// Three matrix products on the input as it lies: weights are {outputs, elements of a sample}, padding included.
class LinearKernel final : public Kernel {
 public:
  LinearKernel(const Planned& planned, const Linear& layer)
      : node_{planned.node}, has_bias_{layer.has_bias}, input_{planned.inputs[0]} {
    Builder& builder = planned.builder;
    if (!builder.parameters.find(node_.parameters[0])) {
      builder.parameters.set(node_.parameters[0], weights_like(input_.desc, layer.n_out));
      if (has_bias_) builder.parameters.set(node_.parameters[1], plain_desc({static_cast<memory::dim>(layer.n_out)}));
    }
    n_ = static_cast<memory::dim>(builder.n);
    n_out_ = static_cast<memory::dim>(layer.n_out);
    n_in_ = static_cast<memory::dim>(n_floats(input_.desc) / builder.n);
    output_ = builder.make(matrix(n_, n_out_));
    plan_forward(builder);
  }

  void forward(Call& call) override { run_all(forward_, call.run); }

  std::vector<std::optional<Tensor>> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    gradient_ = builder.use(gradients[0]).place;
    storage_ = &builder.storage;
    const Tensor of_weights{matrix(n_out_, n_in_), builder.gradient(node_.parameters[0]).place};
    plan_product(builder, {transposed(n_out_, n_), gradient_}, {matrix(n_, n_in_), input_.place}, of_weights);
    if (has_bias_) bias_gradient_ = builder.gradient(node_.parameters[1]).place;
    if (!builder.needs_gradient(node_.inputs[0])) return {std::nullopt};
    const Tensor result = builder.make(input_.desc);
    plan_product(builder, {matrix(n_, n_out_), gradient_},
                 {matrix(n_out_, n_in_), builder.parameter(node_.parameters[0]).place},
                 {matrix(n_, n_in_), result.place});
    return {result};
  }

  void backward(Call& call) override {
    run_all(backward_, call.run);
    if (!has_bias_) return;
    loops().sum_rows(storage_->at<const float>(gradient_), static_cast<std::size_t>(n_),
                     static_cast<std::size_t>(n_out_), storage_->at<float>(bias_gradient_));
  }

 private:
  void plan_forward(Builder& builder) {
    const Tensor a{matrix(n_, n_in_), input_.place};
    const Tensor b{transposed(n_in_, n_out_), builder.parameter(node_.parameters[0]).place};
    const Desc bias = has_bias_ ? matrix(1, n_out_) : Desc{};
    const auto described = describe_matmul(builder.engine, a.desc, b.desc, bias, output_.desc);
    if (has_bias_) {
      const Tensor c{bias, builder.parameter(node_.parameters[1]).place};
      forward_.push_back(builder.primitive(
          described, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_BIAS, c}, {DNNL_ARG_DST, output_}}));
    } else {
      forward_.push_back(
          builder.primitive(described, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, output_}}));
    }
  }

  void plan_product(Builder& builder, const Tensor& a, const Tensor& b, const Tensor& result) {
    const auto described = describe_matmul(builder.engine, a.desc, b.desc, {}, result.desc);
    backward_.push_back(
        builder.primitive(described, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, result}}));
  }

  const Node& node_;
  bool has_bias_;
  Tensor input_;
  memory::dim n_ = 0, n_in_ = 0, n_out_ = 0;
  const Storage* storage_ = nullptr;
  Place gradient_{};
  Place bias_gradient_{};
  std::vector<Primitive> forward_{};
  std::vector<Primitive> backward_{};
};

}  // namespace

std::unique_ptr<Kernel> make_linear(const Planned& planned, const Linear& layer) {
  return std::make_unique<LinearKernel>(planned, layer);
}

}  // namespace lockstep::nn::host
