#include "nn/host/dnnl_primitives.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

constexpr bool may_be_empty = true;

dnnl::normalization_flags make_flags(bool has_relu, bool is_training) {
  dnnl::normalization_flags flags = dnnl::normalization_flags::use_scale_shift;
  if (has_relu) flags |= dnnl::normalization_flags::fuse_norm_relu;
  if (!is_training) flags |= dnnl::normalization_flags::use_global_stats;
  return flags;
}

}  // namespace

Dims dims_of(const Desc& desc) { return desc.dims(); }

dnnl::memory::data_type type_of(const Desc& desc) { return desc.data_type(); }

Blocking blocking_of(const Desc& desc) {
  const dnnl_blocking_desc_t& format = desc.data.format_desc.blocking;
  Blocking blocking{.strides = {format.strides, format.strides + desc.data.ndims},
                    .blocks = Dims(static_cast<std::size_t>(desc.data.ndims), 1),
                    .inner = {format.inner_blks, format.inner_blks + format.inner_nblks},
                    .of = {format.inner_idxs, format.inner_idxs + format.inner_nblks}};
  for (std::size_t i = 0; i < blocking.inner.size(); ++i)
    blocking.blocks[static_cast<std::size_t>(blocking.of[i])] *= blocking.inner[i];
  return blocking;
}

ConvDesc describe_conv(const dnnl::engine& engine, const Desc& src, const Desc& weights, const Desc& bias,
                       const Desc& dst, const Window& window) {
  const dnnl::convolution_forward::desc desc(prop_kind::forward_training, algorithm::convolution_direct, src, weights,
                                             bias, dst, window.strides, window.padding_begin, window.padding_end);
  return {desc, make_attributes(), engine, may_be_empty};
}

ConvDataDesc describe_conv_data(const dnnl::engine& engine, const Desc& src, const Desc& weights, const Desc& dst,
                                const Window& window, const ConvDesc& forward) {
  const dnnl::convolution_backward_data::desc desc(algorithm::convolution_direct, src, weights, dst, window.strides,
                                                   window.padding_begin, window.padding_end);
  return {desc, make_attributes(), engine, forward, may_be_empty};
}

ConvWeightsDesc describe_conv_weights(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                                      const Desc& bias, const Desc& dst, const Window& window,
                                      const ConvDesc& forward) {
  const dnnl::convolution_backward_weights::desc desc(algorithm::convolution_direct, src, weights, bias, dst,
                                                      window.strides, window.padding_begin, window.padding_end);
  return {desc, make_attributes(), engine, forward, may_be_empty};
}

MatmulDesc describe_matmul(const dnnl::engine& engine, const Desc& a, const Desc& b, const Desc& bias, const Desc& dst,
                           bool is_added) {
  const dnnl::matmul::desc desc(a, b, bias, dst);
  return {desc, make_attributes(is_added), engine, may_be_empty};
}

BatchNormDesc describe_batch_norm(const dnnl::engine& engine, const Desc& data, float epsilon, bool has_relu,
                                  bool is_training) {
  const dnnl::batch_normalization_forward::desc desc(
      is_training ? prop_kind::forward_training : prop_kind::forward_inference, data, epsilon,
      make_flags(has_relu, is_training));
  return {desc, make_attributes(), engine, may_be_empty};
}

BatchNormBackwardDesc describe_batch_norm_backward(const dnnl::engine& engine, const Desc& data, float epsilon,
                                                   bool has_relu, const BatchNormDesc& forward) {
  const dnnl::batch_normalization_backward::desc desc(prop_kind::backward, data, data, epsilon,
                                                      make_flags(has_relu, true));
  return {desc, make_attributes(), engine, forward, may_be_empty};
}

std::vector<ScaleShiftArgument> scale_shift_arguments(std::size_t n_channels, ScaleShift what) {
  const Desc both{
      {2, static_cast<dnnl::memory::dim>(n_channels)}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::nc};
  return {{what == ScaleShift::gradient ? DNNL_ARG_DIFF_SCALE_SHIFT : DNNL_ARG_SCALE_SHIFT, 0, both}};
}

MaxPoolDesc describe_max_pool(const dnnl::engine& engine, const Desc& src, const Desc& dst, const Window& window) {
  const dnnl::pooling_forward::desc desc(prop_kind::forward_training, algorithm::pooling_max, src, dst, window.strides,
                                         window.kernel, window.padding_begin, window.padding_end);
  return {desc, make_attributes(), engine, may_be_empty};
}

MaxPoolBackwardDesc describe_max_pool_backward(const dnnl::engine& engine, const Desc& src, const Desc& dst,
                                               const Window& window, const MaxPoolDesc& forward) {
  const dnnl::pooling_backward::desc desc(algorithm::pooling_max, src, dst, window.strides, window.kernel,
                                          window.padding_begin, window.padding_end);
  return {desc, make_attributes(), engine, forward, may_be_empty};
}

}  // namespace lockstep::nn::host
