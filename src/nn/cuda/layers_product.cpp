#include <algorithm>

#include "nn/cuda/kernels/column_sums.hpp"
#include "nn/cuda/kernels/elementwise.hpp"
#include "nn/cuda/kernels/fold.hpp"
#include "nn/cuda/kernels/samples.hpp"
#include "nn/cuda/layers.hpp"

namespace lockstep::nn::cuda {
namespace {

/// A convolution, or a matrix product, and its bias.
template <class T>
class ProductLayer final : public CudaLayer<T> {
 public:
  ProductLayer(const Planned<T>& planned, const ConvProblem& problem, bool has_relu)
      : node_{planned.node},
        has_relu_{has_relu},
        problem_{problem},
        x_{planned.inputs[0]},
        weight_{const_cast<T*>(planned.builder.weight(node_.parameters[0]))},
        fold_{fold_of(planned.builder.network, planned.node)},
        image_{planned.builder.network.shape(planned.node.inputs[0])},
        n_outputs_{static_cast<std::size_t>(problem.n_samples * problem.height_out() * problem.width_out())} {
    this->output_ = planned.builder.template make<T>(n_outputs_ * problem.n_out);
    weight_elements_ = static_cast<std::size_t>(problem_.n_out * problem_.kernel * problem_.kernel * problem_.n_in);
    if (fold_) {
      const auto n_squares = static_cast<std::size_t>(problem_.height * problem_.width);
      require_indices(node_, {n_squares, Fold::n_channels, Fold::n_channels}, problem_.n_samples);
      folded_x_ = planned.builder.template make<T>(folded_images().n() * Fold::n_channels);
      folded_weight_ = planned.builder.template make<T>(weight_elements_);
    }
    forward_ = plan(planned.builder, ConvPass::forward);
    forward_workspace_ = planned.builder.template make<std::byte>(forward_->workspace_bytes());
    if (node_.parameters.size() > 1) bias_ = planned.builder.parameter(node_.parameters[1]);
  }

  void forward(PassContext& pass) override {
    if (fold_) {
      enqueue(pass.stream, folded_images());
      enqueue(pass.stream, FoldWeight<T>{*fold_, static_cast<std::size_t>(problem_.n_out), weight_, folded_weight_});
    }
    T* const weight = fold_ ? static_cast<T*>(folded_weight_) : weight_;
    forward_->enqueue(pass.stream, operands(multiplied(), weight, this->output_, forward_workspace_));
    if (bias_ == nullptr) return;
    const auto n_channels = static_cast<std::size_t>(problem_.n_out);
    enqueue(pass.stream,
            AddBias<T>{n_outputs_ * n_channels, n_channels, this->output_, bias_, has_relu_, this->output_});
  }

  std::vector<Place<T>> plan_backward(Builder<T>& builder, const Place<T>& gradient) override {
    gradient_ = gradient;
    builder.use(multiplied());
    weight_pass_ = plan(builder, ConvPass::weight_gradient);
    std::size_t workspace_bytes = weight_pass_->workspace_bytes();
    rounded_ = builder.template make<T>(weight_elements_);
    weight_gradient_ = builder.gradient(node_.parameters[0]);
    if (bias_ != nullptr) {
      bias_gradient_ = builder.gradient(node_.parameters[1]);
      workspace_bytes = std::max(workspace_bytes, column_sums_workspace_bytes(rows()));
    }
    if (builder.needs_gradient(node_.inputs[0])) {
      input_pass_ = plan(builder, ConvPass::input_gradient);
      workspace_bytes = std::max(workspace_bytes, input_pass_->workspace_bytes());
      input_gradient_ = builder.make_value(builder.layout(node_.inputs[0]));
    }
    backward_workspace_ = builder.template make<std::byte>(workspace_bytes);
    return {input_gradient_};
  }

  void backward(PassContext& pass) override {
    weight_pass_->enqueue(pass.stream, operands(multiplied(), rounded_, gradient_, backward_workspace_));
    if (fold_)
      enqueue(pass.stream, KeepFoldedGradient<T>{*fold_, static_cast<std::size_t>(problem_.n_out), rounded_, pass.adds,
                                                 weight_gradient_});
    else
      enqueue(pass.stream, KeepGradient<T>{weight_elements_, rounded_, pass.adds, weight_gradient_});
    if (bias_ != nullptr) {
      auto* const partials = reinterpret_cast<double*>(static_cast<std::byte*>(backward_workspace_));
      enqueue(pass.stream, PartialSums<T>{rows(), gradient_, partials});
      enqueue(pass.stream, ColumnSums{rows(), partials, pass.adds, bias_gradient_});
    }
    if (input_pass_)
      input_pass_->enqueue(pass.stream, operands(input_gradient_, weight_, gradient_, backward_workspace_));
  }

 private:
  std::unique_ptr<Convolution> plan(Builder<T>& builder, ConvPass pass) const {
    return builder.convolutions.plan(problem_, pass, dtype_of<T>());
  }
  /// What weights are multiplied with.
  const Place<T>& multiplied() const { return fold_ ? folded_x_ : x_; }
  FoldImages<T> folded_images() const {
    return {*fold_,
            static_cast<std::size_t>(problem_.n_samples),
            static_cast<int>(image_[1]),
            static_cast<int>(image_[2]),
            x_,
            folded_x_};
  }
  static ConvOperands operands(T* x, T* w, T* y, const Place<std::byte>& workspace) { return {x, w, y, workspace}; }
  GroupedRows rows() const { return {n_outputs_, n_outputs_, static_cast<std::size_t>(problem_.n_out)}; }

  const Node& node_;
  bool has_relu_;
  ConvProblem problem_;
  Place<T> x_;
  T* weight_;
  std::optional<Fold> fold_;
  Shape image_;            ///< of the input
  std::size_t n_outputs_;  ///< positions
  const float* bias_ = nullptr;
  Place<T> folded_x_{}, folded_weight_{};
  Place<T> gradient_{}, input_gradient_{};
  Place<T> rounded_{};  ///< the weight's gradient in the type of activations
  Place<std::byte> forward_workspace_{}, backward_workspace_{};
  float* weight_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
  std::size_t weight_elements_ = 0;
  std::unique_ptr<Convolution> forward_{}, weight_pass_{}, input_pass_{};
};

}  // namespace

template <class T>
std::unique_ptr<CudaLayer<T>> make_product(const Planned<T>& planned, const ConvProblem& problem, bool has_relu) {
  return std::make_unique<ProductLayer<T>>(planned, problem, has_relu);
}
template std::unique_ptr<CudaLayer<core::bfloat16>> make_product(const Planned<core::bfloat16>&, const ConvProblem&,
                                                                 bool);
template std::unique_ptr<CudaLayer<core::float16>> make_product(const Planned<core::float16>&, const ConvProblem&,
                                                                bool);
template std::unique_ptr<CudaLayer<float>> make_product(const Planned<float>&, const ConvProblem&, bool);

}  // namespace lockstep::nn::cuda
