#include "nn/cuda/kernels/column_sums.hpp"
#include "nn/cuda/layers.hpp"
#include "nn/ops/layer_norm/kernels.hpp"

namespace lockstep::nn::cuda {
namespace {

template <class T>
class LayerNormLayer final : public CudaLayer<T> {
 public:
  LayerNormLayer(const Planned<T>& planned, const LayerNorm& layer)
      : node_{planned.node},
        eps_{layer.eps},
        rows_{rows_of(planned)},
        x_{planned.inputs[0]},
        weight_{planned.builder.parameter(node_.parameters[0])},
        bias_{planned.builder.parameter(node_.parameters[1])} {
    Builder<T>& builder = planned.builder;
    this->output_ = builder.make_value(builder.values[planned.index]);
    if (!builder.is_training) return;
    mean_ = builder.template make<float>(rows_.n_rows);
    inverse_ = builder.template make<float>(rows_.n_rows);
  }

  void forward(PassContext& pass) override {
    enqueue(pass.stream, NormalizeFeatures<T>{rows_, x_, eps_, weight_, bias_, this->output_, mean_, inverse_});
  }

  std::vector<Place<T>> plan_backward(Builder<T>& builder, std::span<const Place<T>> gradients) override {
    gradient_ = gradients[0];
    builder.use(x_);
    builder.use(mean_);
    builder.use(inverse_);
    of_weight_ = builder.template make<double>(summed().n_partials());
    of_bias_ = builder.template make<double>(summed().n_partials());
    weight_gradient_ = builder.gradient(node_.parameters[0]);
    bias_gradient_ = builder.gradient(node_.parameters[1]);
    if (!builder.needs_gradient(node_.inputs[0])) return {Place<T>{}};
    input_gradient_ = builder.make_value(builder.layout(node_.inputs[0]));
    return {input_gradient_};
  }

  void backward(PassContext& pass) override {
    const GroupedRows rows = summed();
    enqueue(pass.stream, PartialFeatureGradients<T>{rows, x_, gradient_, mean_, inverse_, of_weight_, of_bias_});
    enqueue(pass.stream, ColumnSums{rows, of_weight_, pass.adds, weight_gradient_});
    enqueue(pass.stream, ColumnSums{rows, of_bias_, pass.adds, bias_gradient_});
    if (input_gradient_.is_given())
      enqueue(pass.stream,
              NormalizeFeaturesBackward<T>{rows_, x_, gradient_, weight_, mean_, inverse_, input_gradient_});
  }

 private:
  static FeatureRows rows_of(const Planned<T>& planned) {
    const ValueLayout& layout = planned.builder.values[planned.index];
    return {static_cast<std::size_t>(planned.builder.n) * layout.n_positions, layout.n_channels,
            layout.padded_channels / pack_channels};
  }
  GroupedRows summed() const { return {rows_.n_rows, rows_.n_rows, rows_.n_channels()}; }

  const Node& node_;
  double eps_;
  FeatureRows rows_;
  Place<T> x_;
  const float* weight_;
  const float* bias_;
  Place<float> mean_{}, inverse_{};
  Place<double> of_weight_{}, of_bias_{};
  Place<T> gradient_{}, input_gradient_{};
  float* weight_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
};

}  // namespace

template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const LayerNorm& layer) {
  return std::make_unique<LayerNormLayer<T>>(planned, layer);
}
LOCKSTEP_FOR_DEVICE_TYPES(LayerNorm)

}  // namespace lockstep::nn::cuda
