#include "nn/host/dnnl_primitives.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

constexpr bool may_be_empty = true;

dnnl::normalization_flags make_flags(bool has_relu, bool is_training) {
  dnnl::normalization_flags flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  if (has_relu) flags |= dnnl::normalization_flags::fuse_norm_relu;
  if (!is_training) flags |= dnnl::normalization_flags::use_global_stats;
  return flags;
}

}  // namespace

Dims dims_of(const Desc& desc) { return desc.get_dims(); }

dnnl::memory::data_type type_of(const Desc& desc) { return desc.get_data_type(); }

Blocking blocking_of(const Desc& desc) {
  Blocking blocking{.strides = desc.get_strides(),
                    .blocks = Dims(static_cast<std::size_t>(desc.get_ndims()), 1),
                    .inner = desc.get_inner_blks(),
                    .of = desc.get_inner_idxs()};
  for (std::size_t i = 0; i < blocking.inner.size(); ++i)
    blocking.blocks[static_cast<std::size_t>(blocking.of[i])] *= blocking.inner[i];
  return blocking;
}

ConvDesc describe_conv(const dnnl::engine& engine, const Desc& src, const Desc& weights, const Desc& bias,
                       const Desc& dst, const Window& window) {
  return ConvDesc(engine, prop_kind::forward_training, algorithm::convolution_direct, src, weights, bias, dst,
                  window.strides, window.padding_begin, window.padding_end, make_attributes(), may_be_empty);
}

ConvDataDesc describe_conv_data(const dnnl::engine& engine, const Desc& src, const Desc& weights, const Desc& dst,
                                const Window& window, const ConvDesc& forward) {
  return ConvDataDesc(engine, algorithm::convolution_direct, src, weights, dst, window.strides, window.padding_begin,
                      window.padding_end, forward, make_attributes(), may_be_empty);
}

ConvWeightsDesc describe_conv_weights(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                                      const Desc& bias, const Desc& dst, const Window& window,
                                      const ConvDesc& forward) {
  return ConvWeightsDesc(engine, algorithm::convolution_direct, src, weights, bias, dst, window.strides,
                         window.padding_begin, window.padding_end, forward, make_attributes(), may_be_empty);
}

MatmulDesc describe_matmul(const dnnl::engine& engine, const Desc& a, const Desc& b, const Desc& bias, const Desc& dst,
                           bool is_added) {
  return MatmulDesc(engine, a, b, bias, dst, make_attributes(is_added), may_be_empty);
}

BatchNormDesc describe_batch_norm(const dnnl::engine& engine, const Desc& data, float epsilon, bool has_relu,
                                  bool is_training) {
  return BatchNormDesc(engine, is_training ? prop_kind::forward_training : prop_kind::forward_inference, data, data,
                       epsilon, make_flags(has_relu, is_training), make_attributes(), may_be_empty);
}

BatchNormBackwardDesc describe_batch_norm_backward(const dnnl::engine& engine, const Desc& data, float epsilon,
                                                   bool has_relu, const BatchNormDesc& forward) {
  return BatchNormBackwardDesc(engine, prop_kind::backward, data, data, data, epsilon, make_flags(has_relu, true),
                               forward, make_attributes(), may_be_empty);
}

std::vector<ScaleShiftArgument> scale_shift_arguments(std::size_t n_channels, ScaleShift what) {
  const Desc one{
      {static_cast<dnnl::memory::dim>(n_channels)}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a};
  if (what == ScaleShift::gradient) return {{DNNL_ARG_DIFF_SCALE, 0, one}, {DNNL_ARG_DIFF_SHIFT, n_channels, one}};
  if (what == ScaleShift::backward) return {{DNNL_ARG_SCALE, 0, one}};  // oneDNN rejects an extra argument
  return {{DNNL_ARG_SCALE, 0, one}, {DNNL_ARG_SHIFT, n_channels, one}};
}

MaxPoolDesc describe_max_pool(const dnnl::engine& engine, const Desc& src, const Desc& dst, const Window& window) {
  const Dims dilation{0, 0};
  return MaxPoolDesc(engine, prop_kind::forward_training, algorithm::pooling_max, src, dst, window.strides,
                     window.kernel, dilation, window.padding_begin, window.padding_end, make_attributes(),
                     may_be_empty);
}

MaxPoolBackwardDesc describe_max_pool_backward(const dnnl::engine& engine, const Desc& src, const Desc& dst,
                                               const Window& window, const MaxPoolDesc& forward) {
  const Dims dilation{0, 0};
  return MaxPoolBackwardDesc(engine, algorithm::pooling_max, src, dst, window.strides, window.kernel, dilation,
                             window.padding_begin, window.padding_end, forward, make_attributes(), may_be_empty);
}

}  // namespace lockstep::nn::host
