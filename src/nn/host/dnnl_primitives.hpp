// The descriptions of primitives, which differ between versions 2 and 3 of oneDNN.
// Invariant: every description asks for a scratchpad of ours and is empty if oneDNN has no such primitive; all are for
// training, so that layouts are the same in evaluation.
// Used by the layers; the differences are in dnnl_primitives_2.cpp or dnnl_primitives_3.cpp, whichever fits the
// library.
#pragma once

#include <dnnl.hpp>
#include <string>
#include <vector>

namespace lockstep::nn::host {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

[[nodiscard]] Dims dims_of(const Desc& desc);
[[nodiscard]] dnnl::memory::data_type type_of(const Desc& desc);

/// How elements lie: `strides` between blocks of each dimension, how many of its elements such a block has, and what
/// blocks are made of: `inner` elements of dimension `of`, from the outermost to the innermost.
struct Blocking {
  Dims strides{};
  Dims blocks{};
  Dims inner{};
  Dims of{};
};
[[nodiscard]] Blocking blocking_of(const Desc& desc);

/// Whether oneDNN has only its reference implementation here, which is hundreds of times slower than the others.
[[nodiscard]] bool is_reference(const dnnl::primitive_desc_base& described);

/// With a scratchpad of ours; `is_added`: results are added to what is there.
[[nodiscard]] dnnl::primitive_attr make_attributes(bool is_added = false);

/// A convolution's or a pool's window.
struct Window {
  Dims kernel;
  Dims strides;
  Dims padding_begin;
  Dims padding_end;
};

/// An empty `bias` is none. ReLU is never included: oneDNN's would turn NaN into 0, and hide it.
[[nodiscard]] dnnl::convolution_forward::primitive_desc describe_conv(const dnnl::engine& engine, const Desc& src,
                                                                      const Desc& weights, const Desc& bias,
                                                                      const Desc& dst, const Window& window);
[[nodiscard]] dnnl::convolution_backward_data::primitive_desc describe_conv_data(
    const dnnl::engine& engine, const Desc& src, const Desc& weights, const Desc& dst, const Window& window,
    const dnnl::convolution_forward::primitive_desc& forward);
[[nodiscard]] dnnl::convolution_backward_weights::primitive_desc describe_conv_weights(
    const dnnl::engine& engine, const Desc& src, const Desc& weights, const Desc& bias, const Desc& dst,
    const Window& window, const dnnl::convolution_forward::primitive_desc& forward);

/// dst = a b (+ bias) (+ dst, if the product is added), of matrices of any strides.
[[nodiscard]] dnnl::matmul::primitive_desc describe_matmul(const dnnl::engine& engine, const Desc& a, const Desc& b,
                                                           const Desc& bias, const Desc& dst, bool is_added = false);

/// With scale and shift. `is_training`: with the batch's own mean and variance, which are then results.
[[nodiscard]] dnnl::batch_normalization_forward::primitive_desc describe_batch_norm(const dnnl::engine& engine,
                                                                                    const Desc& data, float epsilon,
                                                                                    bool has_relu, bool is_training);
[[nodiscard]] dnnl::batch_normalization_backward::primitive_desc describe_batch_norm_backward(
    const dnnl::engine& engine, const Desc& data, float epsilon, bool has_relu,
    const dnnl::batch_normalization_forward::primitive_desc& forward);

/// One argument of a primitive, and where its elements begin in the array that holds scales, then shifts.
struct ScaleShiftArgument {
  int argument;
  std::size_t offset;
  Desc desc;
};
enum class ScaleShift { forward, backward, gradient };  ///< input of which pass, or output of the backward one
/// The arguments through which batch normalization takes or fills an array of scales, then shifts.
[[nodiscard]] std::vector<ScaleShiftArgument> scale_shift_arguments(std::size_t n_channels, ScaleShift what);

[[nodiscard]] dnnl::pooling_forward::primitive_desc describe_max_pool(const dnnl::engine& engine, const Desc& src,
                                                                      const Desc& dst, const Window& window);
[[nodiscard]] dnnl::pooling_backward::primitive_desc describe_max_pool_backward(
    const dnnl::engine& engine, const Desc& src, const Desc& dst, const Window& window,
    const dnnl::pooling_forward::primitive_desc& forward);

}  // namespace lockstep::nn::host
