#include <algorithm>

#include "nn/cuda/kernels/column_sums.hpp"
#include "nn/cuda/kernels/fold.hpp"
#include "nn/cuda/layers.hpp"

namespace lockstep::nn::cuda {
namespace {

/// Products up to this size leave part of a GPU idle, so gradients of weights run beside the rest of the pass. This
/// made ResNet-18 at 64x64 6 % faster, MovieLens 7 and the MNIST CNN 11 %. ResNet-50 at 224x224, whose products are
/// larger, became 0.8 % slower (H200).
constexpr std::size_t most_bytes_beside = std::size_t{24} << 20;

/// A convolution, or a matrix product, and its bias.
template <class T>
class ProductLayer final : public CudaLayer<T> {
 public:
  ProductLayer(const Planned<T>& planned, const NodeProducts& products)
      : node_{planned.node},
        products_{products},
        x_{planned.inputs[0]},
        weight_{const_cast<T*>(planned.builder.weight(node_.parameters[0]))},
        fold_{fold_of(planned.builder.network, planned.node)},
        image_{planned.builder.network.shape(planned.node.inputs[0])},
        n_outputs_{static_cast<std::size_t>(problem().n_samples * problem().height_out() * problem().width_out())},
        runs_beside_{is_beside(problem(), planned.builder)} {
    this->output_ = planned.builder.template make<T>(problem().y_elements());
    if (fold_) {
      const auto n_squares = static_cast<std::size_t>(problem().height * problem().width);
      require_indices(node_, {n_squares, Fold::n_channels, Fold::n_channels}, problem().n_samples);
      folded_x_ = planned.builder.template make<T>(folded_images().n() * Fold::n_channels);
      folded_weight_ = planned.builder.template make<T>(problem().w_elements());
    }
    forward_ = plan(planned.builder, products_.forward);
    forward_workspace_ = planned.builder.template make<std::byte>(forward_->workspace_bytes());
    if (node_.parameters.size() > 1) {
      bias_ = planned.builder.parameter(node_.parameters[1]);
      rounded_bias_ = planned.builder.weight(node_.parameters[1]);
    }
  }

  void forward(PassContext& pass) override {
    if (fold_) {
      enqueue(pass.stream, folded_images());
      enqueue(pass.stream, FoldWeight<T>{*fold_, static_cast<std::size_t>(problem().n_out), weight_, folded_weight_});
    }
    T* const weight = fold_ ? static_cast<T*>(folded_weight_) : weight_;
    forward_->enqueue(pass.stream, {.x = multiplied(),
                                    .w = weight,
                                    .y = this->output_,
                                    .workspace = forward_workspace_,
                                    .bias = bias_,
                                    .rounded_bias = rounded_bias_});
  }

  std::vector<Place<T>> plan_backward(Builder<T>& builder, std::span<const Place<T>> gradients) override {
    gradient_ = gradients[0];
    hold(builder, gradient_);
    hold(builder, builder.use(multiplied()));
    weight_pass_ = plan(builder, products_.weight_gradient);
    std::size_t workspace_bytes = weight_pass_->workspace_bytes();
    if (fold_) folded_gradient_ = hold(builder, builder.template make<T>(problem().w_elements()));
    weight_gradient_ = builder.gradient(node_.parameters[0]);
    adds_ = builder.adds_to_gradient(node_.parameters[0]);
    if (bias_ != nullptr) {
      bias_gradient_ = builder.gradient(node_.parameters[1]);
      workspace_bytes = std::max(workspace_bytes, column_sums_workspace_bytes(rows()));
    }
    if (products_.input_gradient) {
      input_pass_ = plan(builder, *products_.input_gradient);
      if (runs_beside_)
        input_workspace_ = builder.template make<std::byte>(input_pass_->workspace_bytes());
      else
        workspace_bytes = std::max(workspace_bytes, input_pass_->workspace_bytes());
      input_gradient_ = builder.make_value(builder.layout(node_.inputs[0]));
    }
    weight_workspace_ = hold(builder, builder.template make<std::byte>(workspace_bytes));
    if (!runs_beside_) input_workspace_ = weight_workspace_;
    return {input_gradient_};
  }

  void backward(PassContext& pass) override {
    runtime::Stream& beside = runs_beside_ && pass.beside != nullptr ? *pass.beside : pass.stream;
    void* const weight_gradient = fold_ ? static_cast<void*>(static_cast<T*>(folded_gradient_)) : weight_gradient_;
    weight_pass_->enqueue(beside, {.x = multiplied(),
                                   .w = weight_gradient,
                                   .y = gradient_,
                                   .workspace = weight_workspace_,
                                   .adds = (pass.adds || adds_) && !fold_});
    if (fold_)
      enqueue(beside, KeepFoldedGradient<T>{*fold_, static_cast<std::size_t>(problem().n_out), folded_gradient_,
                                            pass.adds, weight_gradient_});
    if (bias_ != nullptr) {
      auto* const partials = reinterpret_cast<double*>(static_cast<std::byte*>(weight_workspace_));
      enqueue(beside, PartialSums<T>{rows(), gradient_, partials});
      enqueue(beside, ColumnSums{rows(), partials, pass.adds, bias_gradient_});
    }
    if (input_pass_)
      input_pass_->enqueue(
          pass.stream,
          {.x = input_gradient_, .w = weight_, .y = gradient_, .workspace = input_workspace_, .rectified = x_});
  }

  bool runs_beside() const noexcept override { return runs_beside_; }

 private:
  /// Decided for the largest batch, so that a smaller batch does not need more memory.
  static bool is_beside(ConvProblem problem, const Builder<T>& builder) {
    problem.n_samples = problem.n_samples / builder.n * builder.options.max_batch;
    return sizeof(T) * problem.n_elements() <= most_bytes_beside;
  }
  std::unique_ptr<Convolution> plan(Builder<T>& builder, const Product& product) const {
    return builder.convolutions.plan(product, dtype_of<T>());
  }
  template <class U>
  Place<U> hold(Builder<T>& builder, const Place<U>& place) const {
    return runs_beside_ ? builder.hold(place) : place;
  }
  const ConvProblem& problem() const { return products_.forward.problem; }
  /// The operand that is multiplied by weights.
  const Place<T>& multiplied() const { return fold_ ? folded_x_ : x_; }
  FoldImages<T> folded_images() const {
    return {*fold_,
            static_cast<std::size_t>(problem().n_samples),
            static_cast<int>(image_[1]),
            static_cast<int>(image_[2]),
            x_,
            folded_x_};
  }
  GroupedRows rows() const { return {n_outputs_, n_outputs_, static_cast<std::size_t>(problem().n_out)}; }

  const Node& node_;
  NodeProducts products_;
  Place<T> x_;
  T* weight_;
  std::optional<Fold> fold_;
  Shape image_;            ///< of the input
  std::size_t n_outputs_;  ///< positions
  bool runs_beside_;
  const float* bias_ = nullptr;
  const T* rounded_bias_ = nullptr;
  Place<T> folded_x_{}, folded_weight_{}, folded_gradient_{};
  Place<T> gradient_{}, input_gradient_{};
  Place<std::byte> forward_workspace_{}, weight_workspace_{}, input_workspace_{};
  float* weight_gradient_ = nullptr;
  bool adds_ = false;  ///< to the gradient of a weight that other layers share
  float* bias_gradient_ = nullptr;
  std::unique_ptr<Convolution> forward_{}, weight_pass_{}, input_pass_{};
};

template <class T>
std::unique_ptr<CudaLayer<T>> make_product(const Planned<T>& planned) {
  const Builder<T>& builder = planned.builder;
  return std::make_unique<ProductLayer<T>>(planned,
                                           *products_of(builder.network, planned.index, builder.values, builder.n));
}

}  // namespace

template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Conv&) {
  return make_product(planned);
}
template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Linear&) {
  return make_product(planned);
}
LOCKSTEP_FOR_DEVICE_TYPES(Conv)
LOCKSTEP_FOR_DEVICE_TYPES(Linear)

}  // namespace lockstep::nn::cuda
