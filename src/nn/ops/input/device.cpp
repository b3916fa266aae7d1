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
    enqueue(pass.stream, TakeSamples<T>{n_ * layout_.n_rows(), layout_.n_positions / layout_.n_rows(),
                                        layout_.n_channels, layout_.padded_channels, pass.batch.x, this->output_});
  }
  std::vector<Place<T>> plan_backward(Builder<T>&, std::span<const Place<T>>) override { return {}; }
  void backward(PassContext&) override {}

 private:
  const Node& node_;
  std::size_t n_;
  ValueLayout layout_;
  bool is_pixels_ = false;
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
LOCKSTEP_FOR_DEVICE_TYPES(Input)
LOCKSTEP_FOR_DEVICE_TYPES(Ids)

}  // namespace lockstep::nn::cuda
