#include "nn/cuda/layers.hpp"
#include "nn/ops/concat/kernels.hpp"

namespace lockstep::nn::cuda {
namespace {

template <class T>
class ConcatLayer final : public CudaLayer<T> {
 public:
  explicit ConcatLayer(const Planned<T>& planned)
      : node_{planned.node}, n_{static_cast<std::size_t>(planned.builder.n)}, inputs_{planned.inputs} {
    Builder<T>& builder = planned.builder;
    this->output_ = builder.make_value(builder.values[planned.index]);
    width_ = builder.values[planned.index].padded_channels;
    for (const Value input : node_.inputs) parts_.push_back(builder.layout(input));
  }
  void forward(PassContext& pass) override {
    std::size_t first = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const bool is_last = i + 1 == parts_.size();
      const std::size_t n = parts_[i].n_channels;
      enqueue(pass.stream, CopyColumns<T>{n_, n, is_last ? width_ - first - n : 0, inputs_[i],
                                          parts_[i].padded_channels, 0, this->output_, width_, first});
      first += n;
    }
  }
  std::vector<Place<T>> plan_backward(Builder<T>& builder, std::span<const Place<T>> gradients) override {
    gradient_ = gradients[0];
    for (std::size_t i = 0; i < parts_.size(); ++i)
      input_gradients_.push_back(builder.needs_gradient(node_.inputs[i]) ? builder.make_value(parts_[i]) : Place<T>{});
    return input_gradients_;
  }
  void backward(PassContext& pass) override {
    std::size_t first = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::size_t n = parts_[i].n_channels, padded = parts_[i].padded_channels;
      if (input_gradients_[i].is_given())
        enqueue(pass.stream,
                CopyColumns<T>{n_, n, padded - n, gradient_, width_, first, input_gradients_[i], padded, 0});
      first += n;
    }
  }

 private:
  const Node& node_;
  std::size_t n_;
  std::vector<Place<T>> inputs_;
  std::vector<ValueLayout> parts_{};
  std::size_t width_ = 0;
  Place<T> gradient_{};
  std::vector<Place<T>> input_gradients_{};
};

}  // namespace

template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Concat&) {
  return std::make_unique<ConcatLayer<T>>(planned);
}
LOCKSTEP_FOR_DEVICE_TYPES(Concat)

}  // namespace lockstep::nn::cuda
