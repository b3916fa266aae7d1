#include "nn/cuda/layers.hpp"
#include "nn/ops/max_pool/kernels.hpp"

namespace lockstep::nn::cuda {
namespace {

template <class T>
class MaxPoolLayer final : public CudaLayer<T> {
 public:
  MaxPoolLayer(const Planned<T>& planned, const MaxPool& layer)
      : node_{planned.node}, x_{planned.inputs[0]}, sizes_{sizes_of(planned, layer)} {
    Builder<T>& builder = planned.builder;
    this->output_ = builder.make_value(builder.values[planned.index]);
    if (builder.is_training) places_ = builder.template make<std::int8_t>(sizes_.n_out() * pack_channels);
  }
  void forward(PassContext& pass) override { enqueue(pass.stream, PoolMaxima<T>{sizes_, x_, this->output_, places_}); }
  std::vector<Place<T>> plan_backward(Builder<T>& builder, std::span<const Place<T>> gradients) override {
    gradient_ = gradients[0];
    builder.use(places_);
    input_gradient_ = builder.make_value(builder.layout(node_.inputs[0]));
    return {input_gradient_};
  }
  void backward(PassContext& pass) override {
    enqueue(pass.stream, PoolMaximaBackward<T>{sizes_, gradient_, places_, input_gradient_});
  }

 private:
  static PoolSizes sizes_of(const Planned<T>& planned, const MaxPool& layer) {
    const Shape& in = planned.builder.network.shape(planned.node.inputs[0]);
    const Shape& out = planned.node.output;
    for (const ValueLayout& layout :
         {planned.builder.layout(planned.node.inputs[0]), planned.builder.values[planned.index]})
      require_indices(planned.node, layout, planned.builder.n);
    return {.n_images = static_cast<std::size_t>(planned.builder.n),
            .height = static_cast<int>(in[1]),
            .width = static_cast<int>(in[2]),
            .n_channels = planned.builder.values[planned.index].padded_channels,
            .kernel = static_cast<int>(layer.kernel),
            .stride = static_cast<int>(layer.stride),
            .padding = static_cast<int>(layer.padding),
            .out_height = static_cast<int>(out[1]),
            .out_width = static_cast<int>(out[2])};
  }

  const Node& node_;
  Place<T> x_;
  PoolSizes sizes_;
  Place<std::int8_t> places_{};
  Place<T> gradient_{}, input_gradient_{};
};
}  // namespace

template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const MaxPool& layer) {
  return std::make_unique<MaxPoolLayer<T>>(planned, layer);
}
LOCKSTEP_FOR_DEVICE_TYPES(MaxPool)

}  // namespace lockstep::nn::cuda
