#include "nn/ops/conv/host_products.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "nn/host/elements.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::memory;
using dim = memory::dim;

constexpr std::uint64_t most_places = 4;  ///< of the output; with more, products are too many and too small

Desc channels_last(const Dims& dims) { return {dims, memory::data_type::f32, memory::format_tag::acdb}; }

/// What one place of the output uses of one row of the kernel: neighbours in a row of the input, and as many weights.
/// Offsets are in elements, for the first sample and the first output channel.
struct Strip {
  std::size_t src, weights, dst;
  dim length;
  bool is_first;  ///< of its place
};

/// A matrix within a tensor, with rows `stride` elements apart.
Tensor matrix_in(const Place& place, std::size_t offset, dim rows, dim columns, dim stride) {
  return {{{rows, columns}, memory::data_type::f32, Dims{stride, 1}},
          {place.space, place.index, place.offset + offset * sizeof(float)}};
}

Tensor transpose(const Tensor& matrix, dim stride) {
  const Dims dims = dims_of(matrix.desc);
  return {{{dims[1], dims[0]}, memory::data_type::f32, Dims{1, stride}}, matrix.place};
}

class ConvProductsLayer final : public NodeLayer {
 public:
  ConvProductsLayer(const Planned& planned, const Conv& layer) : NodeLayer{planned}, has_bias_{layer.has_bias} {
    Builder& builder = planned.builder;
    n_ = static_cast<dim>(builder.n);
    const Dims in = dims_of(input_.desc), out = with_batch(builder.n, node_.output);
    n_in_ = in[1];
    n_out_ = out[1];
    kernel_ = static_cast<dim>(layer.kernel);
    find_strips(layer, in[2], in[3], out[2], out[3]);
    src_stride_ = in[1] * in[2] * in[3];
    dst_stride_ = out[1] * out[2] * out[3];
    weights_stride_ = kernel_ * kernel_ * n_in_;
    builder.parameters.choose(node_.parameters[0], channels_last({n_out_, n_in_, kernel_, kernel_}));
    if (has_bias_) builder.parameters.choose(node_.parameters[1], plain_desc({n_out_}));
    weights_ = builder.parameter(node_.parameters[0]).place;
    src_ = builder.reordered(input_, channels_last(in), forward_);
    output_ = builder.make(channels_last(out));
    for (const Strip& strip : strips_) {
      Tensor bias;
      if (has_bias_ && strip.is_first)
        bias = matrix_in(builder.parameter(node_.parameters[1]).place, 0, 1, n_out_, n_out_);
      add_product(builder, src_at(strip), transpose(weights_at(strip, weights_), weights_stride_), bias,
                  dst_at(strip, output_.place), !strip.is_first, forward_);
    }
  }

  void forward(PassContext& pass) override { run_all(forward_, pass.run); }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    gradient_ = builder.use(gradients[0]);
    core::require(gradient_.desc == output_.desc, "the gradient has the output's layout");
    builder.use(src_);
    weight_gradient_ = builder.gradient(node_.parameters[0]);
    if (has_bias_) bias_gradient_ = builder.gradient(node_.parameters[1]).place;
    for (const Strip& strip : strips_)
      add_product(builder, transpose(dst_at(strip, gradient_.place), dst_stride_), src_at(strip), {},
                  weights_at(strip, weight_gradient_.place), true, backward_);
    if (!builder.needs_gradient(node_.inputs[0])) return {Tensor{}};
    result_ = builder.make(src_.desc);
    for (const Strip& strip : strips_)
      add_product(builder, dst_at(strip, gradient_.place), weights_at(strip, weights_), {},
                  matrix_in(result_->place, strip.src, n_, strip.length, src_stride_), true, backward_);
    return {builder.reordered(*result_, input_.desc, backward_)};
  }

  void backward(PassContext& pass) override {
    clear(weight_gradient_);
    if (result_) clear(*result_);
    run_all(backward_, pass.run);
    if (!has_bias_) return;
    loops().floats.sum_rows(storage_.at<const float>(gradient_.place),
                            static_cast<std::size_t>(n_ * dst_stride_ / n_out_), static_cast<std::size_t>(n_out_),
                            storage_.at<float>(bias_gradient_));
  }

 private:
  void find_strips(const Conv& layer, dim height, dim width, dim out_height, dim out_width) {
    const auto stride = static_cast<dim>(layer.stride), padding = static_cast<dim>(layer.padding);
    for (dim place = 0; place < out_height * out_width; ++place) {
      const dim top = place / out_width * stride - padding, left = place % out_width * stride - padding;
      const dim first = std::max<dim>(0, -left), last = std::min(kernel_, width - left);
      for (dim row = std::max<dim>(0, -top); row < std::min(kernel_, height - top); ++row) {
        const bool is_first = strips_.empty() || strips_.back().dst != static_cast<std::size_t>(place * n_out_);
        strips_.push_back({static_cast<std::size_t>(((top + row) * width + left + first) * n_in_),
                           static_cast<std::size_t>((row * kernel_ + first) * n_in_),
                           static_cast<std::size_t>(place * n_out_), (last - first) * n_in_, is_first});
      }
    }
  }

  [[nodiscard]] Tensor src_at(const Strip& strip) const {
    return matrix_in(src_.place, strip.src, n_, strip.length, src_stride_);
  }
  [[nodiscard]] Tensor dst_at(const Strip& strip, const Place& place) const {
    return matrix_in(place, strip.dst, n_, n_out_, dst_stride_);
  }
  [[nodiscard]] Tensor weights_at(const Strip& strip, const Place& place) const {
    return matrix_in(place, strip.weights, n_out_, strip.length, weights_stride_);
  }

  void add_product(Builder& builder, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& result,
                   bool is_added, std::vector<Primitive>& primitives) const {
    const auto described = describe_matmul(builder.engine, a.desc, b.desc, bias.desc, result.desc, is_added);
    primitives.push_back(builder.primitive(
        described, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, result}}));
  }

  void clear(const Tensor& tensor) const {
    auto* const elements = storage_.at<float>(tensor.place);
    for_elements(tensor,
                 [&](std::size_t begin, std::size_t end) { std::fill(elements + begin, elements + end, 0.0f); });
  }

  bool has_bias_;
  Tensor src_{};  ///< the input, channels last
  dim n_ = 0, n_in_ = 0, n_out_ = 0, kernel_ = 0;
  dim src_stride_ = 0, dst_stride_ = 0, weights_stride_ = 0;  ///< of samples, and of output channels
  std::vector<Strip> strips_{};
  Place weights_{}, bias_gradient_{};
  Tensor weight_gradient_{}, gradient_{};
  std::optional<Tensor> result_{};  ///< the gradient of src_
  std::vector<Primitive> forward_{}, backward_{};
};

}  // namespace

bool is_for_products(const Planned& planned, const Conv& layer) {
  const Shape& out = planned.node.output;
  return planned.builder.type == memory::data_type::f32 && out[1] * out[2] <= most_places &&
         layer.padding < layer.kernel;
}

std::unique_ptr<HostLayer> make_conv_products(const Planned& planned, const Conv& layer) {
  return std::make_unique<ConvProductsLayer>(planned, layer);
}

}  // namespace lockstep::nn::host
