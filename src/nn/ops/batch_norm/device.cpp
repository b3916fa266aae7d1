#include "nn/ops/batch_norm/backward.hpp"
#include "nn/ops/batch_norm/device_ranks.hpp"
#include "nn/ops/batch_norm/normalize.hpp"
#include "nn/ops/batch_norm/statistics.hpp"

namespace lockstep::nn::cuda {
namespace {

/// Batch normalization of its input; or, in place of an Add node, of one input before the other is added and ReLU is
/// applied.
template <class T>
class BatchNormLayer final : public CudaLayer<T> {
 public:
  struct Added {
    std::optional<Value> value{};
    Place<T> place{};
    bool is_first = false;  ///< of the Add node's inputs, comes first
  };

  BatchNormLayer(const Planned<T>& planned, const BatchNorm& layer, const Added& added = {})
      : node_{planned.node},
        layer_{layer},
        is_training_{planned.builder.is_training},
        is_group_of_ranks_{planned.builder.options.is_group_of_ranks},
        x_{planned.inputs[0]},
        added_{added},
        weight_{planned.builder.parameter(node_.parameters[0])},
        bias_{planned.builder.parameter(node_.parameters[1])},
        running_mean_{planned.builder.arrays.statistics[static_cast<std::size_t>(node_.statistics[0])]},
        running_variance_{planned.builder.arrays.statistics[static_cast<std::size_t>(node_.statistics[1])]},
        rows_{rows_of(planned)} {
    Builder<T>& builder = planned.builder;
    const std::size_t n = rows_.n_groups() * rows_.n_channels();
    this->output_ = builder.make_value(builder.values[planned.index]);
    inverse_ = builder.template make<float>(n);
    if (!is_training_) return;
    if (!is_group_of_ranks_ && rows_.n_rows_of(rows_.n_groups() - 1) == 1) fail_for_single_value(node_);
    mean_ = builder.template make<float>(n);
    moments_ = builder.template make<Moments>(n);
    shared_ = builder.arrays.shared;
    if (layer.has_relu) mask_ = builder.template make<std::uint8_t>(rows_.n_elements() / pack_channels);
    forward_partials_ = builder.template make<Moments>(rows_.n_partials());
  }

  void forward(PassContext& pass) override {
    if (is_training_) {
      enqueue(pass.stream, PartialMoments<T>{rows_, x_, forward_partials_});
      const MoveStatistics move{rows_.n_groups(), rows_.n_channels(), moments_,         layer_.momentum,
                                pass.numbers,     running_mean_,      running_variance_};
      enqueue(pass.stream, GroupMoments{rows_, forward_partials_, layer_.eps, moments_, mean_, inverse_,
                                        is_one_group() ? move : MoveStatistics{}});
      if (is_group_of_ranks_) share_moments(pass, {rows_.n_channels(), shared_, moments_, mean_, inverse_}, layer_.eps);
      if (!is_one_group()) enqueue(pass.stream, move);
    } else {
      enqueue(pass.stream, InvertDeviations{rows_.n_channels(), running_variance_, layer_.eps, inverse_});
    }
    enqueue(pass.stream,
            Normalize<T>{rows_.spread(), x_, added_.place, is_training_ ? static_cast<float*>(mean_) : running_mean_,
                         inverse_, weight_, bias_, layer_.has_relu, this->output_, mask_});
  }

  std::size_t n_gradients_taken() const override { return 2; }

  std::vector<Place<T>> plan_backward(Builder<T>& builder, std::span<const Place<T>> gradients) override {
    gradient_ = gradients[0];
    if (gradients.size() > 1) skip_ = gradients[1];
    builder.use(x_);
    builder.use(mean_);
    builder.use(inverse_);
    builder.use(mask_);
    if (is_group_of_ranks_) builder.use(moments_);
    backward_partials_ = builder.template make<GradientSums>(rows_.n_partials());
    const std::size_t n = rows_.n_groups() * rows_.n_channels();
    if (!is_group_of_ranks_) sums_ = builder.template make<GradientSums>(n);
    offset_ = builder.template make<float>(n);
    slope_ = builder.template make<float>(n);
    weight_gradient_ = builder.gradient(node_.parameters[0]);
    bias_gradient_ = builder.gradient(node_.parameters[1]);
    const ValueLayout& layout = builder.layout(node_.inputs[0]);
    if (builder.needs_gradient(node_.inputs[0])) input_gradient_ = builder.make_value(layout);
    if (!added_.value) return {input_gradient_};
    Place<T> of_added{};
    if (builder.needs_gradient(*added_.value)) {
      if (layer_.has_relu || skip_.is_given()) residual_gradient_ = builder.make_value(layout);
      of_added = residual_gradient_.is_given() ? residual_gradient_ : gradient_;
    }
    if (added_.is_first) return {of_added, input_gradient_};
    return {input_gradient_, of_added};
  }

  void backward(PassContext& pass) override {
    PassedGradient<T> passed{gradient_, skip_, mask_};
    enqueue(pass.stream, PartialGradients<T>{rows_, x_, passed, mean_, residual_gradient_, backward_partials_});
    if (residual_gradient_.is_given()) passed = {residual_gradient_, nullptr, nullptr};
    GradientSums* const sums = is_group_of_ranks_ ? as_gradient_sums(shared_) : static_cast<GradientSums*>(sums_);
    const ScaleShiftGradients of_parameters{rows_.n_groups(), rows_.n_channels(), sums,          inverse_,
                                            pass.adds,        weight_gradient_,   bias_gradient_};
    enqueue(pass.stream, GroupGradients{rows_, backward_partials_, inverse_, sums, offset_, slope_,
                                        is_one_group() ? of_parameters : ScaleShiftGradients{}});
    if (!is_one_group()) enqueue(pass.stream, of_parameters);
    if (is_group_of_ranks_) {
      share_gradients(pass, rows_.n_channels(), sums);
      enqueue(pass.stream, JoinGradients{rows_.n_channels(), sums, moments_, inverse_, offset_, slope_});
    }
    if (input_gradient_.is_given())
      enqueue(pass.stream, NormalizeBackward<T>{rows_.spread(), x_, passed, mean_, inverse_, offset_, slope_, weight_,
                                                input_gradient_});
  }

 private:
  static GroupedRows rows_of(const Planned<T>& planned) {
    const ValueLayout& layout = planned.builder.values[planned.index];
    const std::uint64_t n = planned.builder.n, of_group = planned.builder.options.bn_group;
    const bool is_one =
        !planned.builder.is_training || planned.builder.options.is_group_of_ranks || of_group == 0 || of_group > n;
    return {n * layout.n_positions, (is_one ? n : of_group) * layout.n_positions, layout.padded_channels};
  }

  /// Then the kernel that joins sums also computes what follows from them.
  [[nodiscard]] bool is_one_group() const { return rows_.n_groups() == 1 && !is_group_of_ranks_; }

  const Node& node_;
  BatchNorm layer_;
  bool is_training_;
  bool is_group_of_ranks_;
  Place<T> x_;
  Added added_;
  const float* weight_;
  const float* bias_;
  float* running_mean_;
  float* running_variance_;
  GroupedRows rows_;
  Place<Moments> forward_partials_{}, moments_{};
  Place<float> mean_{}, inverse_{};
  Place<std::uint8_t> mask_{};
  Place<T> gradient_{}, skip_{}, input_gradient_{}, residual_gradient_{};
  Place<GradientSums> backward_partials_{}, sums_{};
  Place<float> offset_{}, slope_{};
  float* weight_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
  double* shared_ = nullptr;  ///< among ranks
};

}  // namespace

template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const BatchNorm& layer) {
  if (is_left_to_reader(planned.builder.network, {static_cast<int>(planned.index)}))
    return std::make_unique<SameLayer<T>>(planned);
  return std::make_unique<BatchNormLayer<T>>(planned, layer);
}
template <class T>
std::unique_ptr<CudaLayer<T>> make_added_batch_norm(const Planned<T>& planned, const Add& add, Value normalized) {
  const bool is_first = planned.node.inputs[1].node == normalized.node;
  const std::size_t added = is_first ? 0 : 1;
  const Node& node = planned.builder.network.nodes()[static_cast<std::size_t>(normalized.node)];
  BatchNorm layer = std::get<BatchNorm>(node.layer);
  layer.has_relu = add.has_relu;
  return std::make_unique<BatchNormLayer<T>>(
      Planned<T>{planned.builder, node, planned.index, {planned.inputs[1 - added]}}, layer,
      typename BatchNormLayer<T>::Added{planned.node.inputs[added], planned.inputs[added], is_first});
}
LOCKSTEP_FOR_DEVICE_TYPES(BatchNorm)
template std::unique_ptr<CudaLayer<core::bfloat16>> make_added_batch_norm(const Planned<core::bfloat16>&, const Add&,
                                                                          Value);
template std::unique_ptr<CudaLayer<core::float16>> make_added_batch_norm(const Planned<core::float16>&, const Add&,
                                                                         Value);
template std::unique_ptr<CudaLayer<float>> make_added_batch_norm(const Planned<float>&, const Add&, Value);

}  // namespace lockstep::nn::cuda
