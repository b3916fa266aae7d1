// Primitives of oneDNN: their descriptions, which differ between its versions 2 and 3, and how they run.
// Invariant: every description uses our scratchpad and is empty if oneDNN has no such primitive. All are for training,
// so that layouts are the same in evaluation. Running allocates nothing of ours.
// Used by the layers; dnnl_primitives_2.cpp and dnnl_primitives_3.cpp have the differences, and the build selects one.
#pragma once

#include <dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::nn::host {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

// Descriptions of primitives.
using ConvDesc = dnnl::convolution_forward::primitive_desc;
using ConvDataDesc = dnnl::convolution_backward_data::primitive_desc;
using ConvWeightsDesc = dnnl::convolution_backward_weights::primitive_desc;
using MatmulDesc = dnnl::matmul::primitive_desc;
using BatchNormDesc = dnnl::batch_normalization_forward::primitive_desc;
using BatchNormBackwardDesc = dnnl::batch_normalization_backward::primitive_desc;
using MaxPoolDesc = dnnl::pooling_forward::primitive_desc;
using MaxPoolBackwardDesc = dnnl::pooling_backward::primitive_desc;

[[nodiscard]] Dims dims_of(const Desc& desc);
[[nodiscard]] dnnl::memory::data_type type_of(const Desc& desc);

/// A layout: `strides` between blocks of each dimension, `blocks` with the elements per block of each dimension, and
/// the nesting within blocks: `inner` elements of dimension `of`, from the outermost to the innermost.
struct Blocking {
  Dims strides{};
  Dims blocks{};
  Dims inner{};
  Dims of{};
};
[[nodiscard]] Blocking blocking_of(const Desc& desc);

/// Whether oneDNN has only its reference implementation here, which is hundreds of times slower.
[[nodiscard]] bool is_reference(const dnnl::primitive_desc_base& described);

/// With our scratchpad; `is_added`: adds results to the present values.
[[nodiscard]] dnnl::primitive_attr make_attributes(bool is_added = false);

/// The window of a convolution or a pool.
struct Window {
  Dims kernel;
  Dims strides;
  Dims padding_begin;
  Dims padding_end;
};

/// An empty `bias` means none. Never includes ReLU, because oneDNN's turns NaN into 0 and so hides it.
[[nodiscard]] ConvDesc describe_conv(const dnnl::engine& engine, const Desc& src, const Desc& weights, const Desc& bias,
                                     const Desc& dst, const Window& window);
[[nodiscard]] ConvDataDesc describe_conv_data(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                                              const Desc& dst, const Window& window, const ConvDesc& forward);
[[nodiscard]] ConvWeightsDesc describe_conv_weights(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                                                    const Desc& bias, const Desc& dst, const Window& window,
                                                    const ConvDesc& forward);

/// dst = a b (+ bias) (+ dst, if the product is added), for matrices with any strides.
[[nodiscard]] MatmulDesc describe_matmul(const dnnl::engine& engine, const Desc& a, const Desc& b, const Desc& bias,
                                         const Desc& dst, bool is_added = false);

/// With scale and shift. `is_training`: uses the batch's own mean and variance, which are then outputs.
[[nodiscard]] BatchNormDesc describe_batch_norm(const dnnl::engine& engine, const Desc& data, float epsilon,
                                                bool has_relu, bool is_training);
[[nodiscard]] BatchNormBackwardDesc describe_batch_norm_backward(const dnnl::engine& engine, const Desc& data,
                                                                 float epsilon, bool has_relu,
                                                                 const BatchNormDesc& forward);

/// One argument of a primitive, and where its elements begin in the array that holds scales, then shifts.
struct ScaleShiftArgument {
  int argument;
  std::size_t offset;
  Desc desc;
};
enum class ScaleShift { forward, backward, gradient };  ///< inputs of a pass, or output of the backward one
/// The arguments by which batch normalization reads or writes an array of scales, then shifts.
[[nodiscard]] std::vector<ScaleShiftArgument> scale_shift_arguments(std::size_t n_channels, ScaleShift what);

[[nodiscard]] MaxPoolDesc describe_max_pool(const dnnl::engine& engine, const Desc& src, const Desc& dst,
                                            const Window& window);
[[nodiscard]] MaxPoolBackwardDesc describe_max_pool_backward(const dnnl::engine& engine, const Desc& src,
                                                             const Desc& dst, const Window& window,
                                                             const MaxPoolDesc& forward);

/// Where primitives run, and how many of them only change a layout.
struct Run {
  dnnl::stream stream{};
  std::size_t n_reorders = 0;
};

/// A primitive with its arguments: a fixed array for oneDNN's C interface.
class Primitive {
 public:
  using Arguments = std::vector<std::pair<int, dnnl::memory>>;

  Primitive() = default;
  Primitive(const_dnnl_primitive_desc_t described, const Arguments& arguments, bool is_reorder = false);

  void run(Run& run) const;

 private:
  dnnl::primitive primitive_{};
  std::vector<dnnl::memory> memories_{};  ///< keeps those of arguments_ alive
  std::vector<dnnl_exec_arg_t> arguments_{};
  bool is_reorder_ = false;
};

/// Runs them one after the other.
void run_all(const std::vector<Primitive>& primitives, Run& run);

}  // namespace lockstep::nn::host
