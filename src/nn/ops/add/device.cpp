#include "nn/cuda/kernels/elementwise.hpp"
#include "nn/cuda/layers.hpp"

namespace lockstep::nn::cuda {
namespace {

/// ReLU, of one value or of the sum of two.
template <class T>
class SumLayer final : public CudaLayer<T> {
 public:
  SumLayer(const Planned<T>& planned, bool has_relu, bool is_done = false, bool is_masked = false)
      : node_{planned.node},
        inputs_{planned.inputs},
        has_relu_{has_relu},
        is_done_{is_done},
        masks_{has_relu && !is_masked},
        layout_{planned.builder.values[planned.index]},
        n_elements_{planned.builder.n * layout_.n_elements()} {
    this->output_ = is_done ? inputs_[0] : planned.builder.make_value(layout_);
  }
  bool has_work() const noexcept override { return !is_done_ || masks_; }
  void forward(PassContext& pass) override {
    if (is_done_) return;
    if (inputs_.size() == 1)
      enqueue(pass.stream, Rectify<T>{n_elements_, inputs_[0], this->output_});
    else
      enqueue(pass.stream, Sum<T>{n_elements_, inputs_[0], inputs_[1], has_relu_, this->output_});
  }
  std::vector<Place<T>> plan_backward(Builder<T>& builder, std::span<const Place<T>> gradients) override {
    gradient_ = gradients[0];
    Place<T> of_inputs = gradient_;
    if (masks_) {
      builder.use(this->output_);
      of_inputs = input_gradient_ = builder.make_value(layout_);
    }
    return std::vector<Place<T>>(node_.inputs.size(), of_inputs);
  }
  void backward(PassContext& pass) override {
    if (!masks_) return;
    enqueue(pass.stream, RectifyBackward<T>{n_elements_, this->output_, gradient_, nullptr, input_gradient_});
  }

 private:
  const Node& node_;
  std::vector<Place<T>> inputs_;
  bool has_relu_;
  bool is_done_;  ///< its input is already rectified
  bool masks_;    ///< its gradient
  ValueLayout layout_;
  std::size_t n_elements_;
  Place<T> gradient_{}, input_gradient_{};
};

}  // namespace

template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Relu&) {
  const Network& network = planned.builder.network;
  return std::make_unique<SumLayer<T>>(planned, true, is_rectified(network, planned.node.inputs[0]),
                                       has_masked_gradient(network, {static_cast<int>(planned.index)}));
}
template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Add& layer) {
  const Value* const normalized = normalized_input(planned.builder.network, planned.node);
  if (normalized != nullptr) return make_added_batch_norm(planned, layer, *normalized);
  return std::make_unique<SumLayer<T>>(planned, layer.has_relu);
}
LOCKSTEP_FOR_DEVICE_TYPES(Relu)
LOCKSTEP_FOR_DEVICE_TYPES(Add)

}  // namespace lockstep::nn::cuda
