#include <algorithm>
#include <cmath>

#include "nn/cuda/kernels/dropout.hpp"
#include "nn/cuda/kernels/elementwise.hpp"
#include "nn/cuda/kernels/images.hpp"
#include "nn/cuda/kernels/samples.hpp"
#include "nn/cuda/layers.hpp"

namespace lockstep::nn::cuda {
namespace {

/// Converts samples to the layout of activations, and pixels to numbers; leaves ids where they are.
template <class T>
class InputLayer final : public CudaLayer<T> {
 public:
  explicit InputLayer(const Planned<T>& planned)
      : node_{planned.node},
        n_{static_cast<std::size_t>(planned.builder.n)},
        layout_{planned.builder.values[planned.index]} {
    const auto* const input = std::get_if<Input>(&node_.layer);
    if (input == nullptr) return;
    is_pixels_ = input->is_pixels;
    if (is_pixels_) require_indices(node_, layout_, planned.builder.n);
    this->output_ = planned.builder.make_value(layout_);
  }
  void forward(PassContext& pass) override {
    if (!this->output_.is_given()) return;
    const DeviceImages& images = pass.batch.images;
    if (is_pixels_)
      return enqueue(pass.stream,
                     LookUpPixels<T>{n_, images.height, images.width, static_cast<int>(layout_.n_channels),
                                     images.pixels, images.views, images.levels, static_cast<int>(node_.output[1]),
                                     static_cast<int>(node_.output[2]), this->output_});
    enqueue(pass.stream, TakeSamples<T>{n_, layout_.n_positions, layout_.n_channels, layout_.padded_channels,
                                        pass.batch.x, this->output_});
  }
  std::vector<Place<T>> plan_backward(Builder<T>&, std::span<const Place<T>>) override { return {}; }
  void backward(PassContext&) override {}

 private:
  const Node& node_;
  std::size_t n_;
  ValueLayout layout_;
  bool is_pixels_ = false;
};

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
              .threshold = threshold_of(layer.probability),
              .factor = static_cast<float>(1 / (1 - layer.probability))} {
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
  static std::uint32_t threshold_of(double probability) {
    return static_cast<std::uint32_t>(std::min(std::floor(probability * 0x1p32), 0x1p32 - 1));
  }
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
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Input&) {
  return std::make_unique<InputLayer<T>>(planned);
}
template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Ids&) {
  return std::make_unique<InputLayer<T>>(planned);
}
template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Relu&) {
  const Network& network = planned.builder.network;
  return std::make_unique<SumLayer<T>>(planned, true, is_rectified(network, planned.node.inputs[0]),
                                       has_masked_gradient(network, {static_cast<int>(planned.index)}));
}
template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Add& layer) {
  const Value* const normalized = normalized_by(planned.builder.network, planned.node);
  if (normalized != nullptr) return make_added_batch_norm(planned, layer, *normalized);
  return std::make_unique<SumLayer<T>>(planned, layer.has_relu);
}
template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Dropout& layer) {
  if (!planned.builder.is_training || layer.probability == 0) return std::make_unique<SameLayer<T>>(planned);
  return std::make_unique<DropoutLayer<T>>(planned, layer);
}
template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Flatten&) {
  return std::make_unique<SameLayer<T>>(planned);
}
/// It is part of the loss.
template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const LogSoftmax&) {
  return std::make_unique<SameLayer<T>>(planned);
}
LOCKSTEP_FOR_DEVICE_TYPES(Input)
LOCKSTEP_FOR_DEVICE_TYPES(Ids)
LOCKSTEP_FOR_DEVICE_TYPES(Relu)
LOCKSTEP_FOR_DEVICE_TYPES(Add)
LOCKSTEP_FOR_DEVICE_TYPES(Dropout)
LOCKSTEP_FOR_DEVICE_TYPES(Flatten)
LOCKSTEP_FOR_DEVICE_TYPES(LogSoftmax)

}  // namespace lockstep::nn::cuda
