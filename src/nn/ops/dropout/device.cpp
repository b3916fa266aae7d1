#include "nn/cuda/layers.hpp"
#include "nn/ops/dropout/kernels.hpp"

namespace lockstep::nn::cuda {
namespace {

template <class T>
class DropoutLayer final : public CudaLayer<T> {
 public:
  DropoutLayer(const Planned<T>& planned, const Dropout& layer)
      : layout_{planned.builder.values[planned.index]},
        x_{planned.inputs[0]},
        body_{.n_samples = static_cast<std::size_t>(planned.builder.n),
              .n_positions = layout_.n_positions,
              .n_channels = layout_.padded_channels,
              .x = nullptr,
              .out = nullptr,
              .ids = nullptr,
              .numbers = nullptr,
              .seed = planned.builder.options.seed,
              .node = static_cast<std::uint32_t>(planned.index),
              .threshold = layer.threshold(),
              .factor = layer.factor(),
              .row_features = layout_.has_rows ? layout_.n_channels : 0} {
    this->output_ = planned.builder.make_value(layout_);
  }
  void forward(PassContext& pass) override { run(pass, x_, this->output_); }
  std::vector<Place<T>> plan_backward(Builder<T>& builder, std::span<const Place<T>> gradients) override {
    gradient_ = gradients[0];
    input_gradient_ = builder.make_value(layout_);
    return {input_gradient_};
  }
  void backward(PassContext& pass) override { run(pass, gradient_, input_gradient_); }

 private:
  void run(PassContext& pass, const T* from, T* to) const {
    DropElements<T> body = body_;
    body.x = from;
    body.out = to;
    body.ids = pass.batch.ids;
    body.numbers = pass.numbers;
    enqueue(pass.stream, body);
  }

  ValueLayout layout_;
  Place<T> x_;
  DropElements<T> body_;  ///< of both passes
  Place<T> gradient_{}, input_gradient_{};
};

}  // namespace

template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Dropout& layer) {
  if (!planned.builder.is_training || layer.probability == 0) return std::make_unique<SameLayer<T>>(planned);
  return std::make_unique<DropoutLayer<T>>(planned, layer);
}
LOCKSTEP_FOR_DEVICE_TYPES(Dropout)

}  // namespace lockstep::nn::cuda
