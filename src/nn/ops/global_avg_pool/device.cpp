#include "nn/cuda/layers.hpp"
#include "nn/ops/global_avg_pool/kernels.hpp"

namespace lockstep::nn::cuda {
namespace {

template <class T>
class AverageLayer final : public CudaLayer<T> {
 public:
  explicit AverageLayer(const Planned<T>& planned)
      : n_{static_cast<std::size_t>(planned.builder.n)},
        x_{planned.inputs[0]},
        layout_{planned.builder.layout(planned.node.inputs[0])} {
    this->output_ = planned.builder.make_value(planned.builder.values[planned.index]);
  }
  void forward(PassContext& pass) override {
    enqueue(pass.stream, Averages<T>{n_, layout_.n_positions, layout_.padded_channels, x_, this->output_});
  }
  std::vector<Place<T>> plan_backward(Builder<T>& builder, std::span<const Place<T>> gradients) override {
    gradient_ = gradients[0];
    input_gradient_ = builder.make_value(layout_);
    return {input_gradient_};
  }
  void backward(PassContext& pass) override {
    enqueue(pass.stream,
            AveragesBackward<T>{n_, layout_.n_positions, layout_.padded_channels, gradient_, input_gradient_});
  }

 private:
  std::size_t n_;
  Place<T> x_;
  ValueLayout layout_;
  Place<T> gradient_{}, input_gradient_{};
};

}  // namespace

template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const GlobalAvgPool&) {
  return std::make_unique<AverageLayer<T>>(planned);
}
LOCKSTEP_FOR_DEVICE_TYPES(GlobalAvgPool)

}  // namespace lockstep::nn::cuda
