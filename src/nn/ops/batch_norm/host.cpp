#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "nn/host/elements.hpp"
#include "nn/ops/batch_norm/host_statistics.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::memory;

constexpr std::size_t lanes = 16;  ///< oneDNN's vectors may extend beyond the end of an array of channels

std::size_t whole_lanes(std::size_t n) { return (n + lanes - 1) / lanes * lanes; }

/// A contiguous slice of the batch whose statistics are computed together, with its primitives.
struct Group {
  std::size_t n_samples = 0;
  Tensor input{}, output{};
  Tensor mean{}, variance{};
  Tensor positive{};  ///< the primitive's record of where ReLU is positive
  BatchNormDesc described{};
  Primitive forward{}, backward{};
};

/// Samples [first, first + n) of `whole`.
Tensor slice(const Tensor& whole, std::size_t first, std::size_t n) {
  Dims dims = dims_of(whole.desc);
  const std::size_t sample_bytes = whole.desc.get_size() / static_cast<std::size_t>(dims[0]);
  dims[0] = static_cast<memory::dim>(n);
  Place place = whole.place;
  place.offset += first * sample_bytes;
  return {whole.desc.submemory_desc(dims, Dims(dims.size(), 0)), place};
}

class BatchNormLayer final : public NodeLayer {
 public:
  BatchNormLayer(const Planned& planned, const BatchNorm& layer) : NodeLayer{planned}, layer_{layer} {
    Builder& builder = planned.builder;
    n_channels_ = static_cast<std::size_t>(node_.output[0]);
    is_training_ = builder.is_training;
    channels_ = plain_desc({static_cast<memory::dim>(n_channels_)});
    for (const int parameter : node_.parameters) builder.parameters.choose(parameter, channels_);
    weight_ = builder.parameter(node_.parameters[0]).place;
    bias_ = builder.parameter(node_.parameters[1]).place;
    running_mean_ = &builder.statistics[static_cast<std::size_t>(node_.statistics[0])];
    running_variance_ = &builder.statistics[static_cast<std::size_t>(node_.statistics[1])];
    output_ = builder.make(input_.desc);
    scale_shift_ = builder.make_bytes(whole_lanes(2 * n_channels_) * sizeof(float));
    includes_relu_ = layer.has_relu && !is_reference(describe(builder, input_.desc, true));
    const std::uint64_t group = is_training_ && builder.options.bn_group > 0 ? builder.options.bn_group : builder.n;
    for (std::uint64_t first = 0; first < builder.n; first += group)
      plan_group(builder, first, std::min(group, builder.n - first));
  }

  void forward(PassContext& pass) override {
    gather_scale_shift();
    for (const Group& group : groups_) group.forward.run(pass.run);
    if (layer_.has_relu && !includes_relu_) rectify(storage_, output_.place, output_);
    if (includes_relu_) pass.is_finite = pass.is_finite && has_finite_arrays();
    if (is_training_ && pass.numbers.share_of_step > 0) move_statistics(pass);
  }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    builder.use(input_);
    storage_.use(scale_shift_, builder.time);
    of_scale_shift_ = builder.make_bytes(whole_lanes(2 * n_channels_) * sizeof(float));
    weight_gradient_ = builder.gradient(node_.parameters[0]).place;
    bias_gradient_ = builder.gradient(node_.parameters[1]).place;
    const Tensor result = builder.may_overwrite(gradients[0]) ? gradients[0] : builder.make(input_.desc);
    const bool has_own_relu = layer_.has_relu && !includes_relu_;
    if (has_own_relu) {
      builder.use(output_);
      relu_gradient_ = builder.use(gradients[0]).place;
      before_relu_ = result;
    }
    const Tensor& gradient = has_own_relu ? result : gradients[0];
    std::size_t first = 0;
    for (Group& group : groups_) {
      plan_group_backward(builder, group, slice(gradient, first, group.n_samples),
                          slice(result, first, group.n_samples));
      first += group.n_samples;
    }
    if (!builder.needs_gradient(node_.inputs[0])) return {Tensor{}};
    return {result};
  }

  void backward(PassContext& pass) override {
    gather_scale_shift();
    if (before_relu_) relu_backward(storage_, output_, std::span{&relu_gradient_, 1}, *before_relu_);
    auto* const of_weight = storage_.at<float>(weight_gradient_);
    auto* const of_bias = storage_.at<float>(bias_gradient_);
    const auto* const sums = storage_.at<const float>(of_scale_shift_);
    for (const Group& group : groups_) {
      group.backward.run(pass.run);
      if (&group == &groups_.front()) {
        std::copy_n(sums, n_channels_, of_weight);
        std::copy_n(sums + n_channels_, n_channels_, of_bias);
      } else {
        loops().floats.add_to(of_weight, sums, n_channels_);
        loops().floats.add_to(of_bias, sums + n_channels_, n_channels_);
      }
    }
  }

 private:
  BatchNormDesc describe(const Builder& builder, const Desc& data, bool has_relu) const {
    return describe_batch_norm(builder.engine, data, static_cast<float>(layer_.eps), has_relu, is_training_);
  }

  void plan_group(Builder& builder, std::size_t first, std::size_t n) {
    if (is_training_ && n * node_.output[1] * node_.output[2] == 1) fail_for_single_value(node_);
    Group& group = groups_.emplace_back();
    group.n_samples = n;
    group.input = slice(input_, first, n);
    group.output = slice(output_, first, n);
    group.described = describe(builder, group.input.desc, includes_relu_);
    core::require(static_cast<bool>(group.described), "oneDNN has this batch normalization");
    Primitive::Arguments more = statistics_arguments(builder, group);
    append_scale_shift(builder, scale_shift_, ScaleShift::forward, more);
    if (is_training_ && includes_relu_) group.positive = builder.make(group.described.workspace_desc());
    group.forward = builder.primitive(
        group.described,
        {{DNNL_ARG_SRC, group.input}, {DNNL_ARG_DST, group.output}, {DNNL_ARG_WORKSPACE, group.positive}},
        std::move(more));
  }

  /// Uses the batch's own statistics, or the running ones.
  Primitive::Arguments statistics_arguments(Builder& builder, Group& group) const {
    if (!is_training_) {
      return {{DNNL_ARG_MEAN, memory{channels_, builder.engine, running_mean_->data()}},
              {DNNL_ARG_VARIANCE, memory{channels_, builder.engine, running_variance_->data()}}};
    }
    const std::size_t n_bytes = whole_lanes(n_channels_) * sizeof(float);
    group.mean = {channels_, builder.make_bytes(n_bytes)};
    group.variance = {channels_, builder.make_bytes(n_bytes)};
    return {{DNNL_ARG_MEAN, builder.storage.memory(channels_, group.mean.place, builder.time)},
            {DNNL_ARG_VARIANCE, builder.storage.memory(channels_, group.variance.place, builder.time)}};
  }

  void append_scale_shift(Builder& builder, const Place& array, ScaleShift what, Primitive::Arguments& more) const {
    for (const ScaleShiftArgument& argument : scale_shift_arguments(n_channels_, what)) {
      Place place = array;
      place.offset += argument.offset * sizeof(float);
      more.emplace_back(argument.argument, builder.storage.memory(argument.desc, place, builder.time));
    }
  }

  void plan_group_backward(Builder& builder, Group& group, const Tensor& gradient, const Tensor& result) {
    const auto described = describe_batch_norm_backward(
        builder.engine, group.input.desc, static_cast<float>(layer_.eps), includes_relu_, group.described);
    Primitive::Arguments more;
    append_scale_shift(builder, scale_shift_, ScaleShift::backward, more);
    append_scale_shift(builder, of_scale_shift_, ScaleShift::gradient, more);
    group.backward = builder.primitive(described,
                                       {{DNNL_ARG_SRC, group.input},
                                        {DNNL_ARG_MEAN, group.mean},
                                        {DNNL_ARG_VARIANCE, group.variance},
                                        {DNNL_ARG_WORKSPACE, group.positive},
                                        {DNNL_ARG_DIFF_DST, gradient},
                                        {DNNL_ARG_DIFF_SRC, result}},
                                       std::move(more));
  }

  /// oneDNN 2 takes scales and shifts as one array, but parameter slots are separate.
  void gather_scale_shift() const {
    auto* const both = storage_.at<float>(scale_shift_);
    std::copy_n(storage_.at<const float>(weight_), n_channels_, both);
    std::copy_n(storage_.at<const float>(bias_), n_channels_, both + n_channels_);
  }

  /// Checks the values before ReLU, because oneDNN's ReLU turns NaN into 0.
  [[nodiscard]] bool has_finite_arrays() const {
    const auto are_finite = [](const float* values, std::size_t n) {
      return std::all_of(values, values + n, [](float value) { return std::isfinite(value); });
    };
    bool is_finite = are_finite(storage_.at<const float>(scale_shift_), 2 * n_channels_);
    if (!is_training_)
      return is_finite && are_finite(running_mean_->data(), n_channels_) &&
             are_finite(running_variance_->data(), n_channels_);
    for (const Group& group : groups_)
      is_finite = is_finite && are_finite(storage_.at<const float>(group.mean.place), n_channels_) &&
                  are_finite(storage_.at<const float>(group.variance.place), n_channels_);
    return is_finite;
  }

  /// Moves running statistics towards the mean over groups, weighted by samples: the same for any division of the
  /// groups among calls or ranks.
  void move_statistics(const PassContext& pass) const {
    const RunningMove move{layer_, pass};
    const auto n_positions = static_cast<double>(node_.output[1] * node_.output[2]);
    double n_total = 0;
    for (const Group& group : groups_) n_total += static_cast<double>(group.n_samples);
    for (std::size_t c = 0; c < n_channels_; ++c) {
      double mean = 0, variance = 0;
      for (const Group& group : groups_) {
        const double weight = static_cast<double>(group.n_samples) / n_total;
        const double n_values = static_cast<double>(group.n_samples) * n_positions;
        mean += weight * static_cast<double>(storage_.at<const float>(group.mean.place)[c]);
        variance += weight * static_cast<double>(storage_.at<const float>(group.variance.place)[c]) *
                    (n_values / (n_values - 1));
      }
      move((*running_mean_)[c], mean);
      move((*running_variance_)[c], variance);
    }
  }

  BatchNorm layer_;
  bool is_training_ = false;
  bool includes_relu_ = false;  ///< by oneDNN's primitives; where that is reference code only, we apply ReLU ourselves
  std::size_t n_channels_ = 0;
  Desc channels_{};
  Place weight_{}, bias_{}, weight_gradient_{}, bias_gradient_{};
  Place scale_shift_{}, of_scale_shift_{};
  std::vector<float>* running_mean_ = nullptr;
  std::vector<float>* running_variance_ = nullptr;
  std::vector<Group> groups_{};
  Place relu_gradient_{};                ///< of the output
  std::optional<Tensor> before_relu_{};  ///< for the gradient of ReLU's input, if we apply ReLU
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const BatchNorm& layer) {
  if (planned.builder.is_training && planned.builder.options.is_group_of_ranks)
    return make_sync_batch_norm(planned, layer);
  return make_by_onednn<BatchNormLayer>(planned, layer);
}

}  // namespace lockstep::nn::host
